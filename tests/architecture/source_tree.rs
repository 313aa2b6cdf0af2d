//! The repository's files as git lists them: what every rule reads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A text file of the repository.
pub(crate) struct File {
    /// Relative to the workspace.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl File {
    /// The text without the inline tests at its end.
    pub(crate) fn production_text(&self) -> &str {
        self.text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default()
    }

    pub(crate) fn is_test(&self) -> bool {
        let path = self.path.to_string_lossy();
        path.contains("/tests/") || path.starts_with("tests/") || path.ends_with("tests.rs")
    }

    pub(crate) fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

/// Every text file that git tracks, or would after `git add`, and that matches one of `patterns`.
pub(crate) fn files(patterns: &[&str]) -> Vec<File> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "--"])
        .args(patterns)
        .current_dir(root())
        .output()
        .expect("git");
    let names = String::from_utf8(listed.stdout).expect("names");
    let read = |name: &str| {
        let text = fs::read_to_string(root().join(name)).ok()?;
        Some(File { path: name.into(), text })
    };
    names.lines().filter_map(read).collect()
}

/// Every Rust file.
pub(crate) fn rust_files() -> Vec<File> {
    let files = files(&["*.rs"]);
    assert!(files.len() > 100, "only {} files found", files.len());
    files
}

/// The folders of the workspace's crates that have a library, relative to the workspace.
pub(crate) fn crate_folders() -> Vec<PathBuf> {
    let roots = rust_files().into_iter().filter(|file| file.path.ends_with("src/lib.rs"));
    roots.filter_map(|file| Some(file.path.parent()?.parent()?.to_owned())).collect()
}
