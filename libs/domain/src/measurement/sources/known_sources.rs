//! The list of known sources, by host and by their names in campaigns.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The kind of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Search,
    Social,
    Video,
    Shopping,
    Email,
    Assistant,
}

/// A known source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownSource {
    pub(super) kind: Kind,
    pub(super) name: &'static str,
}

/// Further names of sources in campaigns; a name with the suffix `ads` means the source's advertisements.
const ALIASES: &[(&str, &str)] = &[
    ("chat.openai", "ChatGPT"),
    ("ddg", "DuckDuckGo"),
    ("fb", "Facebook"),
    ("g", "Google"),
    ("google shopping", "Google Shopping"),
    ("gplus", "Google+"),
    ("hn", "Hacker News"),
    ("ig", "Instagram"),
    ("linked-in", "LinkedIn"),
    ("meta", "Facebook"),
    ("openai", "ChatGPT"),
    ("tt", "TikTok"),
    ("x", "Twitter"),
    ("yahoo", "Yahoo!"),
    ("yt", "YouTube"),
];
/// Suffixes that turn a source's name into that of its advertisements.
const AD_ENDINGS: &[&str] = &["ads", "ad"];
/// Second-level domains under which countries register names.
const SECOND_LEVELS: &[&str] = &["ac", "co", "com", "edu", "gov", "ne", "net", "or", "org"];

struct Atlas {
    by_host: HashMap<&'static str, KnownSource>,
    by_name: HashMap<String, KnownSource>,
}

static ATLAS: LazyLock<Atlas> = LazyLock::new(|| {
    let (mut by_host, mut by_name) = (HashMap::new(), HashMap::new());
    for line in include_str!("known_sources.tsv").lines() {
        let mut columns = line.split('\t');
        let (Some(kind), Some(name), Some(host)) = (columns.next(), columns.next(), columns.next()) else {
            continue;
        };
        let kind = match kind {
            "search" => Kind::Search,
            "social" => Kind::Social,
            "video" => Kind::Video,
            "shopping" => Kind::Shopping,
            "email" => Kind::Email,
            _ => Kind::Assistant,
        };
        let source = KnownSource { kind, name };
        by_host.insert(host, source);
        by_name.entry(name.to_lowercase()).or_insert(source);
    }
    for (alias, name) in ALIASES {
        if let Some(source) = by_name.get(&name.to_lowercase()).copied() {
            by_name.insert((*alias).to_owned(), source);
        }
    }
    Atlas { by_host, by_name }
});

impl KnownSource {
    /// Returns the source of this host, or of a parent domain.
    pub(super) fn at(host: &str) -> Option<Self> {
        endings(host).find_map(|ending| {
            ATLAS
                .by_host
                .get(ending)
                .copied()
                .or_else(|| ATLAS.by_host.get(worldwide(ending)?.as_str()).copied())
        })
    }

    /// Returns the source with this campaign name, in lower case, and whether the name means its advertisements.
    pub(super) fn called(word: &str) -> Option<(Self, bool)> {
        let bare = word.strip_prefix("www.").unwrap_or(word);
        let known = |word: &str| ATLAS.by_name.get(word).copied();
        if let Some(source) = known(bare).or_else(|| Self::at(bare)) {
            return Some((source, false));
        }
        let bare = if bare == "adwords" { "google ads" } else { bare };
        let stem = AD_ENDINGS.iter().find_map(|ending| bare.strip_suffix(ending))?;
        known(stem.trim_end_matches([' ', '-', '_', '.'])).map(|source| (source, true))
    }
}

/// Iterates over the host and its parent domains that contain a dot.
pub(super) fn endings(host: &str) -> impl Iterator<Item = &str> {
    let starts = std::iter::once(0).chain(host.match_indices('.').map(|(dot, _)| dot + 1));
    starts.map(|start| &host[start..]).filter(|ending| ending.contains('.'))
}

/// Returns the host with a placeholder for the country: `google.co.uk` becomes `google.{}`.
fn worldwide(host: &str) -> Option<String> {
    let (rest, _country) = host.rsplit_once('.')?;
    let stem = match rest.rsplit_once('.') {
        Some((stem, second)) if SECOND_LEVELS.contains(&second) => stem,
        _ => rest,
    };
    Some(format!("{stem}.{{}}"))
}
