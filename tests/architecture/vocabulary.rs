//! The code speaks the field's language: words and file names that only their author understood stay out.

use std::collections::BTreeMap;

use crate::source_tree::{File, files, rust_files};

/// Words that must not occur, neither in prose nor as a part of an identifier.
const BANNED_WORDS: [&str; 14] = [
    "whoever", "somebody", "nobody", "seat", "seats", "door", "doors", "lane", "lanes", "wish", "wishes",
    "heed", "heeds", "house",
];

/// The first word of a banned pair; the second is "on".
const BANNED_BEFORE_ON: [&str; 4] = ["lean", "leans", "leaned", "leaning"];

/// Postgres refuses to run as root, so the sandbox runs it as the Unix user of this name.
const UNIX_USER: (&str, &str) = ("nobody", "libs/sandbox/");

/// sqlx checksums a migration's comments too, so the files that data folders have applied stay as they are.
const APPLIED_MIGRATIONS: &str = "migrations/postgres/";

/// Names that files had before they were named after the thing they hold.
const BANNED_FILE_NAMES: [&str; 91] = [
    "agents",
    "alone",
    "announcing",
    "asked",
    "borrowed",
    "brought",
    "by_hand",
    "cable",
    "callers",
    "chains",
    "changing",
    "chassis",
    "closings",
    "complaint",
    "counted",
    "crowds",
    "door",
    "drops",
    "endings",
    "ends",
    "erasing",
    "fault",
    "feed",
    "fetching",
    "filled",
    "finish",
    "floors",
    "following",
    "forgetting",
    "front",
    "gathered",
    "going_on",
    "greeting",
    "headed",
    "heed_wishes",
    "hit",
    "hold",
    "home",
    "instants",
    "keeper",
    "lane",
    "large",
    "layouts",
    "ledger",
    "line",
    "lines",
    "lingering",
    "memory",
    "meter",
    "mortal",
    "moves",
    "names",
    "narrow",
    "notes",
    "nul",
    "once",
    "overviews",
    "paced",
    "part",
    "parts",
    "places",
    "postbox",
    "proofs",
    "questioning",
    "questions",
    "quick",
    "reach",
    "reading",
    "ready",
    "refusal",
    "remembered",
    "replies",
    "returners",
    "returns",
    "room",
    "sealing",
    "seats",
    "sending",
    "serving",
    "short",
    "showing",
    "silence",
    "sought",
    "spares",
    "stand",
    "taken",
    "taking",
    "things",
    "traps",
    "turns",
    "vacant",
];

/// Of 1,000 words in comments, at most this many may be one of [`PERSONAL_PRONOUNS`]. Linkerd's proxy, MAS and svix
/// have 0 to 0.27.
const PERSONAL_PRONOUNS_PER_1000: f64 = 0.27;
const PERSONAL_PRONOUNS: [&str; 5] = ["whoever", "nobody", "somebody", "whom", "whose"];

const PROSE: [&str; 13] = [
    "*.rs",
    "*.md",
    "*.toml",
    "*.sql",
    "*.py",
    "*.mjs",
    "*.js",
    "*.html",
    "*.lua",
    "*.txt",
    "*openapi.json",
    "*/run",
    ".ci/*",
];

/// The words of a text in lower case, those within identifiers too: `SeatMap` and `seat_map` have two.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|char: char| !char.is_ascii_alphabetic()).flat_map(|run| {
        let mut words: Vec<String> = Vec::new();
        let mut follows_lower_case = false;
        for char in run.chars() {
            if words.is_empty() || (char.is_ascii_uppercase() && follows_lower_case) {
                words.push(String::new());
            }
            follows_lower_case = char.is_ascii_lowercase();
            words.last_mut().expect("a word was just pushed").push(char.to_ascii_lowercase());
        }
        words
    })
}

fn banned_in<'a>(file: &'a File, line: &str) -> impl Iterator<Item = String> + 'a {
    let mut previous = String::new();
    // The database's name would count as two words.
    let line = line.replace("ClickHouse", "clickhouse");
    let all: Vec<String> = words(&line).collect();
    all.into_iter().filter_map(move |word| {
        let is_pair = word == "on" && BANNED_BEFORE_ON.contains(&previous.as_str());
        let is_user = word == UNIX_USER.0 && file.path.starts_with(UNIX_USER.1);
        let is_banned = is_pair || (BANNED_WORDS.contains(&word.as_str()) && !is_user);
        let found = if is_pair { format!("{previous} on") } else { word.clone() };
        previous = word;
        is_banned.then_some(found)
    })
}

#[test]
fn banned_words_do_not_occur() {
    let mut found = Vec::new();
    let is_exempt = |file: &&File| {
        file.path.ends_with("architecture/vocabulary.rs") || file.path.starts_with(APPLIED_MIGRATIONS)
    };
    for file in files(&PROSE).iter().filter(|file| !is_exempt(file)) {
        // A table of renamed keys names the old ones.
        let is_renamed_key =
            |line: &str| file.path.ends_with("config.rs") && line.trim_start().starts_with("(\"");
        for (number, line) in (1..).zip(file.text.lines()).filter(|(_, line)| !is_renamed_key(line)) {
            found.extend(banned_in(file, line).map(|word| format!("{}:{number}: {word}", file.name())));
        }
    }
    assert!(found.is_empty(), "{} banned words, use the field's terms:\n{}", found.len(), found.join("\n"));
}

#[test]
fn banned_file_names_do_not_occur() {
    assert!(BANNED_FILE_NAMES.is_sorted(), "keep the list sorted");
    let stem = |file: &File| file.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let found: Vec<_> = files(&["*.rs", "*.py", "*.mjs"])
        .into_iter()
        .filter(|file| BANNED_FILE_NAMES.binary_search(&stem(file).as_str()).is_ok())
        .map(|file| file.path)
        .collect();
    assert!(found.is_empty(), "name these after what they hold, in the field's terms: {found:?}");
}

#[test]
fn comments_name_persons_by_their_role() {
    let mut total = 0;
    let mut per_file: BTreeMap<String, usize> = BTreeMap::new();
    for file in rust_files().iter().filter(|file| !file.path.ends_with("architecture/vocabulary.rs")) {
        for comment in file.text.lines().filter_map(|line| Some(line.split_once("//")?.1)) {
            for word in words(comment) {
                total += 1;
                if PERSONAL_PRONOUNS.contains(&word.as_str()) {
                    *per_file.entry(file.name()).or_default() += 1;
                }
            }
        }
    }
    let found: usize = per_file.values().sum();
    let per_1000 = 1_000.0 * found as f64 / f64::from(total);
    assert!(
        per_1000 <= PERSONAL_PRONOUNS_PER_1000,
        "{per_1000:.2} of {PERSONAL_PRONOUNS:?} per 1,000 words; say visitor, owner, operator, caller, client: {per_file:#?}"
    );
}
