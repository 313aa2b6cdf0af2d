//! File layout: short files with a header, named after their content, in small folders, all of them used.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::source_tree::{File, rust_files};

const MEDIAN_LINES: usize = 120;
const P90_LINES: usize = 250;
const MAX_LINES: usize = 400;
const MAX_FILES_PER_FOLDER: usize = 15;
const FORBIDDEN_NAMES: [&str; 8] =
    ["utils", "helpers", "common", "misc", "types", "models", "prelude", "manager"];

#[test]
fn files_are_short() {
    let files = rust_files();
    let mut sizes: Vec<(usize, &Path)> = files
        .iter()
        .filter(|file| !file.is_test())
        .map(|file| (file.production_text().lines().count(), file.path.as_path()))
        .collect();
    sizes.sort();
    let at = |share: f64| sizes[((sizes.len() - 1) as f64 * share) as usize].0;
    let long: Vec<_> = sizes.iter().filter(|(lines, _)| *lines > MAX_LINES).collect();
    assert!(long.is_empty(), "over {MAX_LINES} lines: {long:?}");
    assert!(at(0.5) <= MEDIAN_LINES, "the median file has {} lines", at(0.5));
    assert!(at(0.9) <= P90_LINES, "the 90th percentile is {} lines", at(0.9));
}

#[test]
fn every_file_starts_with_a_header() {
    let missing: Vec<_> = rust_files()
        .into_iter()
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| file.path)
        .collect();
    assert!(missing.is_empty(), "files without a `//!` header: {missing:?}");
}

#[test]
fn files_and_folders_are_named_after_their_content() {
    let has_forbidden_name = |file: &File| {
        file.path.iter().any(|part| {
            let stem = part.to_string_lossy();
            FORBIDDEN_NAMES.contains(&stem.trim_end_matches(".rs"))
        })
    };
    let found: Vec<_> = rust_files().into_iter().filter(has_forbidden_name).map(|file| file.path).collect();
    assert!(found.is_empty(), "name these after their content: {found:?}");
}

#[test]
fn large_folders_have_sub_modules() {
    let mut folders: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for file in rust_files().iter().filter(|file| !file.is_test()) {
        *folders.entry(file.folder().to_owned()).or_default() += 1;
    }
    let large: Vec<_> = folders.iter().filter(|(_, files)| **files > MAX_FILES_PER_FOLDER).collect();
    assert!(large.is_empty(), "folders with more than {MAX_FILES_PER_FOLDER} files: {large:?}");
}

#[test]
fn every_file_is_part_of_a_crate() {
    let files = rust_files();
    let is_orphan = |file: &&File| {
        let stem = file.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folder = file.folder();
        let is_mod = stem == "mod";
        let module =
            if is_mod { folder.file_name().unwrap_or_default().to_string_lossy().into_owned() } else { stem };
        let parent_folder = if is_mod { folder.parent().unwrap_or(Path::new("")) } else { folder };
        let is_root = ["lib", "main", "build"].contains(&module.as_str())
            || folder.ends_with("tests")
            || folder.ends_with("benches")
            || folder.ends_with("examples")
            || folder.ends_with("harness") && module == "stack";
        let parents = ["lib.rs", "main.rs", "mod.rs"]
            .map(|name| parent_folder.join(name))
            .into_iter()
            .chain([parent_folder.with_extension("rs")]);
        let declares = |parent: PathBuf| {
            let line = format!("mod {module};");
            files.iter().any(|other| {
                other.path == parent && other.text.lines().any(|l| l.trim_end().ends_with(&line))
            })
        };
        !is_root && !parents.into_iter().any(declares)
    };
    let orphans: Vec<_> = files.iter().filter(is_orphan).map(|file| &file.path).collect();
    assert!(orphans.is_empty(), "no `mod` declares these: {orphans:?}");
}

#[test]
fn unsafe_code_is_only_in_the_sandbox_and_in_a_counting_allocator() {
    /// The one test that counts the bytes of hostile expressions.
    const COUNTING_ALLOCATOR: &str = "libs/automation/tests/hostile.rs";
    let word = ["un", "safe "].concat();
    let contains_word = |file: &File| {
        file.text.lines().any(|line| !line.trim_start().starts_with("//") && line.contains(&word))
    };
    let outside: Vec<_> = rust_files()
        .into_iter()
        .filter(|file| !file.path.starts_with("libs/sandbox") && file.path != Path::new(COUNTING_ALLOCATOR))
        .filter(contains_word)
        .map(|file| file.path)
        .collect();
    assert!(outside.is_empty(), "{word}code is allowed in libs/sandbox only: {outside:?}");
}
