//! A directory per test.

use std::path::{Path, PathBuf};

use super::backends::must;
use crate::dirs::TempDir;

/// A directory for one test. Dropping it deletes it.
#[derive(Debug)]
pub struct TestFolder(TempDir);

/// Returns a directory for this test.
#[must_use]
pub fn folder() -> TestFolder {
    TestFolder(must(TempDir::new("folder")))
}

impl TestFolder {
    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.0.path.join("content")
    }

    /// Returns the relative path of every file in it, sorted.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        collect(&self.path(), &self.path(), &mut found);
        found.sort();
        found
    }
}

fn collect(folder: &Path, base: &Path, into: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, base, into);
        } else if let Ok(path) = path.strip_prefix(base) {
            into.push(path.display().to_string());
        }
    }
}
