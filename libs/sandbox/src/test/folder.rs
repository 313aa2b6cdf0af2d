//! A folder per test.

use std::path::{Path, PathBuf};

use super::backends::must;
use crate::dirs::TempDir;

/// A folder of this test's own. Dropped, it goes.
#[derive(Debug)]
pub struct TestFolder(TempDir);

/// A folder of this test's own.
#[must_use]
pub fn folder() -> TestFolder {
    TestFolder(must(TempDir::new("folder")))
}

impl TestFolder {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.0.path.join("content")
    }

    /// Every file in it, by its path from there.
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
