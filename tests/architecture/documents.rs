//! Every crate has a short README, decisions are pages of their own, and paths in documents exist.

use std::fs;

use crate::source_tree::{crate_folders, files, root};

const README_MAX_WORDS: usize = 300;

#[test]
fn every_crate_has_a_readme_of_at_most_300_words() {
    let mut violations = Vec::new();
    for folder in crate_folders() {
        match fs::read_to_string(root().join(&folder).join("README.md")) {
            Ok(text) if text.split_whitespace().count() <= README_MAX_WORDS => {}
            Ok(text) => {
                violations.push(format!("{}: {} words", folder.display(), text.split_whitespace().count()));
            }
            Err(error) => violations.push(format!("{}: {error}", folder.display())),
        }
    }
    assert!(violations.is_empty(), "README.md is missing or too long:\n{}", violations.join("\n"));
}

#[test]
fn every_decision_has_a_number_a_context_a_decision_and_consequences() {
    let mut pages = files(&["*/docs/*.md"]);
    // Guides for operators, which are no decisions.
    pages.retain(|page| !page.path.starts_with("deploy/docs"));
    assert!(pages.len() > 10, "only {} decisions found", pages.len());
    let is_wrong = |name: &str, text: &str| {
        let stem = name.rsplit('/').next().unwrap_or_default();
        let is_numbered = stem.len() > 5 && stem.chars().take(4).all(|char| char.is_ascii_digit());
        let has = |heading: &str| text.lines().any(|line| line.starts_with(heading));
        !is_numbered || !has("## Context") || !has("## Decision") || !has("## Consequence")
    };
    let wrong: Vec<_> = pages
        .iter()
        .map(|page| (page.name(), &page.text))
        .filter(|(name, text)| is_wrong(name, text))
        .collect();
    let names: Vec<_> = wrong.iter().map(|(name, _)| name).collect();
    assert!(names.is_empty(), "expected NNNN-title.md with Context, Decision and Consequence: {names:?}");
}

/// The texts between backticks and the targets of links that look like paths of this repository.
fn paths_in(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let linked = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let is_path = |path: &&str| {
        let names_file = path.ends_with(".rs") || path.ends_with(".md") || path.ends_with(".toml");
        names_file && path.contains('/') && !path.contains([' ', '*', '<', '{', ':'])
    };
    quoted.chain(linked).filter(is_path)
}

/// A path is relative to the repository, to the page, to the page's crate or to the crate's `src`.
#[test]
fn paths_in_documents_exist() {
    let mut missing = Vec::new();
    for page in files(&["*.md"]) {
        for path in paths_in(&page.text) {
            let path = path.split('#').next().unwrap_or_default();
            let owner =
                page.folder().parent().filter(|_| page.folder().ends_with("docs")).unwrap_or(page.folder());
            let bases = [
                root().to_owned(),
                root().join(page.folder()),
                root().join(owner),
                root().join(owner).join("src"),
            ];
            if !bases.iter().any(|base| base.join(path).exists()) {
                missing.push(format!("{}: {path}", page.name()));
            }
        }
    }
    assert!(missing.is_empty(), "these paths do not exist:\n{}", missing.join("\n"));
}
