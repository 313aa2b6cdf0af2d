//! How files look: short, opened by a sentence on why they exist, called by what they hold, and used.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MEDIAN_LINES: usize = 120;
const P90_LINES: usize = 250;
const MOST_LINES: usize = 400;
const FORBIDDEN_NAMES: [&str; 8] =
    ["utils", "helpers", "common", "misc", "types", "models", "prelude", "manager"];

struct File {
    path: PathBuf,
    text: String,
}

impl File {
    /// Everything but the inline tests at its end.
    fn production_lines(&self) -> usize {
        let body = self.text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
        body.lines().count()
    }

    fn is_test(&self) -> bool {
        let path = self.path.to_string_lossy();
        path.contains("/tests/") || path.starts_with("tests/") || path.ends_with("tests.rs")
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

/// Every Rust file that git knows or would take.
fn files() -> Vec<File> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])
        .current_dir(root())
        .output()
        .expect("git");
    let names = String::from_utf8(listed.stdout).expect("names");
    let read = |name: &str| {
        let text = fs::read_to_string(root().join(name)).ok()?;
        Some(File { path: name.into(), text })
    };
    let files: Vec<File> = names.lines().filter_map(read).collect();
    assert!(files.len() > 100, "only {} files found", files.len());
    files
}

#[test]
fn files_are_short() {
    let files = files();
    let mut sizes: Vec<(usize, &Path)> = files
        .iter()
        .filter(|file| !file.is_test())
        .map(|file| (file.production_lines(), file.path.as_path()))
        .collect();
    sizes.sort();
    let at = |share: f64| sizes[((sizes.len() - 1) as f64 * share) as usize].0;
    let long: Vec<_> = sizes.iter().filter(|(lines, _)| *lines > MOST_LINES).collect();
    assert!(long.is_empty(), "over {MOST_LINES} lines: {long:?}");
    assert!(at(0.5) <= MEDIAN_LINES, "the median file has {} lines", at(0.5));
    assert!(at(0.9) <= P90_LINES, "one file in ten has over {} lines", at(0.9));
}

#[test]
fn every_file_opens_by_saying_why_it_exists() {
    let silent: Vec<_> =
        files().into_iter().filter(|file| !file.text.starts_with("//! ")).map(|file| file.path).collect();
    assert!(silent.is_empty(), "without a `//!` at the top: {silent:?}");
}

#[test]
fn no_file_or_folder_is_a_junk_drawer() {
    let is_junk = |file: &File| {
        file.path.iter().any(|part| {
            let stem = part.to_string_lossy();
            FORBIDDEN_NAMES.contains(&stem.trim_end_matches(".rs"))
        })
    };
    let junk: Vec<_> = files().into_iter().filter(is_junk).map(|file| file.path).collect();
    assert!(junk.is_empty(), "call it by what it holds: {junk:?}");
}

#[test]
fn every_file_is_used() {
    let files = files();
    let orphan = |file: &&File| {
        let stem = file.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folder = file.path.parent().unwrap_or(Path::new(""));
        let module = if stem == "mod" {
            folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
        } else {
            stem
        };
        let place =
            if file.path.ends_with("mod.rs") { folder.parent().unwrap_or(Path::new("")) } else { folder };
        let is_root = ["lib", "main", "build"].contains(&module.as_str())
            || folder.ends_with("tests")
            || folder.ends_with("benches")
            || folder.ends_with("examples")
            || folder.ends_with("harness") && module == "stack";
        let parents = ["lib.rs", "main.rs", "mod.rs"]
            .map(|name| place.join(name))
            .into_iter()
            .chain([place.with_extension("rs")]);
        let says = |parent: PathBuf| {
            let line = format!("mod {module};");
            files.iter().any(|other| {
                other.path == parent && other.text.lines().any(|l| l.trim_end().ends_with(&line))
            })
        };
        !is_root && !parents.into_iter().any(says)
    };
    let orphans: Vec<_> = files.iter().filter(orphan).map(|file| &file.path).collect();
    assert!(orphans.is_empty(), "no module says `mod` of: {orphans:?}");
}

#[test]
fn unsafe_code_stays_in_the_sandbox() {
    let word = ["un", "safe "].concat();
    let has = |file: &File| {
        file.text.lines().any(|line| !line.trim_start().starts_with("//") && line.contains(&word))
    };
    let outside: Vec<_> = files()
        .into_iter()
        .filter(|file| !file.path.starts_with("libs/sandbox") && has(file))
        .map(|file| file.path)
        .collect();
    assert!(outside.is_empty(), "{word}belongs into libs/sandbox alone: {outside:?}");
}

#[test]
fn every_room_says_what_it_is_for() {
    let rooms = files().into_iter().filter(|file| file.path.ends_with("src/lib.rs"));
    let missing: Vec<_> = rooms
        .map(|file| file.path.parent().and_then(Path::parent).unwrap_or(Path::new("")).join("README.md"))
        .filter(|readme| !root().join(readme).exists())
        .collect();
    assert!(missing.is_empty(), "rooms without a README: {missing:?}");
}
