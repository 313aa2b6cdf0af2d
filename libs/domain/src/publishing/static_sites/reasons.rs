//! Why a file of a zip is not served, or is served without being a page of the API.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::site_path::{self, name_of};

/// Files at the site's root that are parsed and never served.
pub const CONFIGURATION: [&str; 2] = ["_redirects", "_headers"];
/// Segments with secrets or histories, anywhere in a path and in any case. `.env*` is matched by its beginning.
const SECRETS: [&str; 7] = [".git", ".svn", ".hg", ".ssh", ".aws", ".npmrc", ".htpasswd"];

/// Why a file of a zip is not served, or is served without being a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DeployFileReason")]
pub enum Reason {
    /// Lies outside the site's root folder. Not served.
    OutsideRoot,
    /// May contain secrets (`.env`, `.git`), or is junk of an editor or operating system. Not served.
    NeverServed,
    /// Its address belongs to the platform. Not served.
    Reserved,
    /// `_redirects` or `_headers`: parsed, not served.
    Configuration,
    /// Larger than the plan's `assetSizeLimit`. Not served.
    AssetSizeLimit,
    /// HTML larger than a page may be. Served at its path, without a page.
    TooLarge,
    /// HTML beyond the plan's number of projects. Served at its path, without a page.
    ProjectLimit,
    /// HTML that can't be read as text or as a document. Served unchanged at its path, without a page.
    Unsupported,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 8] = [
        Self::OutsideRoot,
        Self::NeverServed,
        Self::Reserved,
        Self::Configuration,
        Self::AssetSizeLimit,
        Self::TooLarge,
        Self::ProjectLimit,
        Self::Unsupported,
    ];

    /// Returns the name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OutsideRoot => "outside_root",
            Self::NeverServed => "never_served",
            Self::Reserved => "reserved",
            Self::Configuration => "configuration",
            Self::AssetSizeLimit => "asset_size_limit",
            Self::TooLarge => "too_large",
            Self::ProjectLimit => "project_limit",
            Self::Unsupported => "unsupported",
        }
    }

    /// Parses the result of [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }

    /// Returns whether the file is served at its path all the same.
    pub fn is_served(self) -> bool {
        matches!(self, Self::TooLarge | Self::ProjectLimit | Self::Unsupported)
    }
}

/// Returns why a file is never served, by its path in the site; `None` if its name allows it.
pub fn left_out_by_name(path: &str) -> Option<Reason> {
    if is_never_served(path) {
        Some(Reason::NeverServed)
    } else if site_path::is_reserved(path) {
        Some(Reason::Reserved)
    } else if CONFIGURATION.contains(&path) {
        Some(Reason::Configuration)
    } else {
        None
    }
}

/// Returns whether a file may contain secrets or is junk. Its folders count too.
pub fn is_never_served(path: &str) -> bool {
    path.split('/').any(|segment| is_secret(segment) || segment == "__MACOSX") || is_junk(name_of(path))
}

fn is_secret(segment: &str) -> bool {
    let segment = segment.to_ascii_lowercase();
    segment.starts_with(".env") || SECRETS.contains(&segment.as_str())
}

/// Returns whether an editor or operating system made a file of this name on its own.
fn is_junk(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    matches!(lower.as_str(), ".ds_store" | "thumbs.db" | "desktop.ini")
        || name.starts_with("._")
        || lower.ends_with(".swp")
        || lower.ends_with('~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_junk_are_never_served() {
        for path in [
            ".env",
            ".env.production",
            "a/.ENV/b",
            ".envrc",
            ".git/config",
            "x/.git/HEAD",
            ".Git/config",
            ".svn/entries",
            ".hg/store/a",
            ".ssh/id_rsa",
            ".aws/credentials",
            ".npmrc",
            "a/b/.htpasswd",
            "__MACOSX/a/._b",
            ".DS_Store",
            "a/.DS_Store",
            "a/._b.html",
            "Thumbs.db",
            "a/desktop.ini",
            ".index.html.swp",
            "index.html~",
        ] {
            assert_eq!(left_out_by_name(path), Some(Reason::NeverServed), "{path}");
        }
    }

    #[test]
    fn other_names_are_served() {
        for path in [
            "_x.html",
            "a/_b",
            ".well-known/security.txt",
            ".nojekyll",
            "env.js",
            "x.env",
            ".gitignore",
            ".github/x.png",
            "git/config",
            "~user/index.html",
            "a~/b",
            "a.swp.html",
            "docs/_redirects",
            "docs/_headers",
            "macosx/a",
            "日本語.html",
        ] {
            assert_eq!(left_out_by_name(path), None, "{path}");
        }
    }

    #[test]
    fn reserved_paths_and_configuration_are_left_out() {
        for (path, reason) in [
            ("_wr/script.js", Reason::Reserved),
            (".well-known/acme-challenge/x", Reason::Reserved),
            ("_redirects", Reason::Configuration),
            ("_headers", Reason::Configuration),
        ] {
            assert_eq!(left_out_by_name(path), Some(reason), "{path}");
        }
    }

    #[test]
    fn reasons_have_one_name_in_json_and_text() {
        for reason in Reason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
            assert_eq!(Reason::parse(reason.as_str()), Some(reason));
        }
        let served: Vec<Reason> = Reason::ALL.into_iter().filter(|reason| reason.is_served()).collect();
        assert_eq!(served, [Reason::TooLarge, Reason::ProjectLimit, Reason::Unsupported]);
    }
}
