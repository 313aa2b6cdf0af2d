//! The manifest of a deploy: its files with their digests, announced so that only what changed needs to be uploaded.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::CSS_BYTES_MAX;
use crate::static_sites::deploy_notes::shown;
use crate::static_sites::limits::UNPACKED_BYTES_MAX;
use crate::static_sites::page_slugs::is_html;
use crate::static_sites::reasons::{CONFIGURATION, is_never_served};
use crate::static_sites::redirects::FILE_BYTES_MAX;
use crate::static_sites::site_path::{self, name_of};
use crate::{FIELD_ERRORS_MAX, FieldError, media, pages};

/// A file as the caller announces it.
#[derive(Debug, Clone)]
pub struct FileInput {
    /// Its path from the zip's top.
    pub path: String,
    /// The SHA-256 digest of its bytes, as hexadecimal digits.
    pub sha256: String,
    /// The number of its bytes.
    pub size_bytes: i64,
}

/// An announced file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedFile {
    /// The path as the caller wrote it, which may be spelled in another Unicode form.
    pub announced_path: String,
    /// The digest that its bytes must have.
    pub sha256: [u8; 32],
    /// The size that it must have.
    pub size_bytes: i64,
}

/// Limits of the account's plan.
#[derive(Debug, Clone, Copy)]
pub struct ManifestLimits {
    /// Files that may be served.
    pub max_files: usize,
    /// Larger files are left out of the site.
    pub max_file_bytes: u64,
}

/// The announced files of a deploy, by their paths in normal form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    files: BTreeMap<String, AnnouncedFile>,
}

impl Manifest {
    /// Checks announced files by the rules for entries of a zip. Each error names the path of its file. The check stops at
    /// [`FIELD_ERRORS_MAX`] errors, so that a bad manifest takes no more memory than a good one.
    pub fn parse(
        inputs: impl IntoIterator<Item = FileInput>,
        limits: ManifestLimits,
    ) -> Result<Self, Vec<FieldError>> {
        let (mut files, mut errors) = (BTreeMap::new(), Vec::new());
        for FileInput { path, sha256, size_bytes } in inputs {
            if errors.len() >= FIELD_ERRORS_MAX {
                break;
            }
            let field = format!("files.{}", shown(&path));
            let site_path = match site_path::of_entry(path.as_bytes()) {
                Ok(site_path) => site_path,
                Err(reason) => {
                    let message = format!("{field}: {reason}");
                    errors.push(FieldError::new(field, "path", message));
                    continue;
                }
            };
            let digest = parse_sha256(&sha256);
            if digest.is_none() {
                let field = format!("{field}.sha256");
                let message = format!("{field} must have 64 hexadecimal digits");
                errors.push(FieldError::new(field, "format", message));
            }
            if size_bytes < 0 {
                let field = format!("{field}.sizeBytes");
                errors.push(FieldError::new(&field, "range", format!("{field} must be 0 or more")));
            }
            let sha256 = digest.unwrap_or_default();
            match files.entry(site_path) {
                Entry::Vacant(entry) => {
                    entry.insert(AnnouncedFile { announced_path: path, sha256, size_bytes });
                }
                Entry::Occupied(_) => {
                    let message = format!("{field} has the same path as another file");
                    errors.push(FieldError::new(field, "duplicate", message));
                }
            }
        }
        errors.truncate(FIELD_ERRORS_MAX);
        let manifest = Self { files };
        if errors.is_empty() {
            errors.extend(manifest.limit_error(limits));
        }
        if errors.is_empty() { Ok(manifest) } else { Err(errors) }
    }

    fn limit_error(&self, limits: ManifestLimits) -> Option<FieldError> {
        let error = |code, message: String| Some(FieldError::new("files", code, message));
        if self.files.is_empty() {
            return error("required", "files must have at least one file".to_owned());
        }
        if self.files.keys().filter(|path| !is_never_served(path)).count() > limits.max_files {
            let message = format!("files has more than {} files, the maximum of the plan", limits.max_files);
            return error("too_many", message);
        }
        let sizes = self
            .files
            .iter()
            .filter(|(path, file)| needs_bytes(path, file.size_bytes.unsigned_abs(), limits.max_file_bytes));
        let total = sizes.fold(0_u64, |sum, (_, file)| sum.saturating_add(file.size_bytes.unsigned_abs()));
        if total > UNPACKED_BYTES_MAX {
            let message = format!("the files have more than {} MB together", UNPACKED_BYTES_MAX >> 20);
            return error("range", message);
        }
        None
    }

    /// Returns the files by their paths in normal form.
    pub fn files(&self) -> &BTreeMap<String, AnnouncedFile> {
        &self.files
    }
}

/// Returns whether a deploy needs the bytes of an announced file: not those of a file that its name or size keeps out of
/// every site of the plan.
pub fn needs_bytes(path: &str, size_bytes: u64, max_file_bytes: u64) -> bool {
    !is_never_served(path) && size_bytes <= max_file_bytes
}

/// Returns whether a deploy reads a file instead of only storing it: HTML and style sheets, whose references may be
/// rewritten, and rules.
pub fn is_read(path: &str, size_bytes: u64) -> bool {
    let max_bytes = if is_html(path) {
        pages::MAX_HTML_BYTES
    } else if CONFIGURATION.contains(&name_of(path)) {
        FILE_BYTES_MAX
    } else if is_style_sheet(path) {
        CSS_BYTES_MAX
    } else {
        return false;
    };
    size_bytes <= max_bytes as u64
}

/// Returns whether a file is a style sheet, by its name.
pub fn is_style_sheet(path: &str) -> bool {
    media::by_name(path) == "text/css"
}

fn parse_sha256(text: &str) -> Option<[u8; 32]> {
    // `from_str_radix` would accept a sign.
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut sha256 = [0; 32];
    for (byte, at) in sha256.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(sha256)
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    const LIMITS: ManifestLimits = ManifestLimits { max_files: 3, max_file_bytes: 300 << 20 };

    fn file(path: &str, size_bytes: i64) -> FileInput {
        FileInput { path: path.to_owned(), sha256: "0f".repeat(32), size_bytes }
    }

    /// Returns field and code of each error.
    fn errors(files: Vec<FileInput>) -> Vec<(String, &'static str)> {
        let errors = Manifest::parse(files, LIMITS).unwrap_err();
        errors.into_iter().map(|error| (error.field, error.code)).collect()
    }

    #[test]
    fn files_are_found_by_their_paths_in_normal_form() {
        let files = vec![file("./a//u\u{308}.html", 1), file("empty.txt", 0)];
        let manifest = Manifest::parse(files, LIMITS).unwrap();
        let announced: Vec<(&str, &str)> = manifest
            .files()
            .iter()
            .map(|(path, file)| (path.as_str(), file.announced_path.as_str()))
            .collect();
        assert_eq!(announced, [("a/ü.html", "./a//u\u{308}.html"), ("empty.txt", "empty.txt")]);
        assert_eq!(manifest.files()["empty.txt"].sha256, [15; 32]);
    }

    #[test]
    fn an_invalid_file_is_named_by_its_path() {
        for path in ["../a", "/a", "C:/a", "a\\b", "a\u{1b}b", "", "a/../b", &"x".repeat(1_025)] {
            let field = format!("files.{}", shown(path));
            assert_eq!(errors(vec![file(path, 1)]), [(field, "path")], "{path:?}");
        }
        for sha256 in ["", "0f", &"0g".repeat(32), &"+f".repeat(32), &"é".repeat(32), &"0f".repeat(33)] {
            let wrong = FileInput { sha256: sha256.to_owned(), ..file("a.js", 1) };
            assert_eq!(errors(vec![wrong]), [("files.a.js.sha256".to_owned(), "format")], "{sha256}");
        }
        assert_eq!(errors(vec![file("a.js", -1)]), [("files.a.js.sizeBytes".to_owned(), "range")]);
        for second in ["a/b", "a//b", "./a/b"] {
            let field = format!("files.{second}");
            assert_eq!(errors(vec![file("a/b", 1), file(second, 2)]), [(field, "duplicate")], "{second}");
        }
    }

    #[test]
    fn a_manifest_with_many_errors_is_checked_up_to_the_fiftieth() {
        let duplicate = FileInput { sha256: String::new(), ..file("a.js", -1) };
        // Each duplicate has three errors.
        for first in ["a.js", "../a"] {
            let mut read = 0;
            let files = iter::once(file(first, 1)).chain(iter::repeat_n(duplicate.clone(), 100_000));
            let errors = Manifest::parse(files.inspect(|_| read += 1), LIMITS).unwrap_err();
            assert_eq!(errors.len(), FIELD_ERRORS_MAX, "{first}");
            assert!(read < 20, "{read} files were read after {first}");
        }
    }

    #[test]
    fn files_beyond_the_limits_are_rejected() {
        let named = |count: usize| (0..count).map(|n| file(&format!("{n}.js"), 1)).collect::<Vec<_>>();
        let mut three = named(3);
        three.extend([file(".env", 1), file(".git/config", 1)]);
        assert!(Manifest::parse(three, LIMITS).is_ok(), "files that are never served don't count");
        assert_eq!(errors(named(4)), [("files".to_owned(), "too_many")]);
        assert_eq!(errors(Vec::new()), [("files".to_owned(), "required")]);
        let sized = |sizes: &[i64]| -> Vec<FileInput> {
            sizes.iter().enumerate().map(|(n, size)| file(&format!("{n}.bin"), *size)).collect()
        };
        assert!(Manifest::parse(sized(&[300 << 20, 200 << 20]), LIMITS).is_ok());
        assert_eq!(errors(sized(&[300 << 20, 200 << 20, 1])), [("files".to_owned(), "range")]);
        let beyond = sized(&[i64::MAX, (300 << 20) + 1, 1]);
        assert!(Manifest::parse(beyond, LIMITS).is_ok(), "files above the plan's limit are left out");
    }

    #[test]
    fn files_that_no_site_serves_need_no_bytes() {
        for (path, size, needed) in [
            ("a.js", 10, true),
            ("a.js", 11, false),
            (".env", 1, false),
            ("x/.git/config", 1, false),
            ("_redirects", 1, true),
        ] {
            assert_eq!(needs_bytes(path, size, 10), needed, "{path}");
        }
    }

    #[test]
    fn only_html_style_sheets_and_rules_are_read() {
        for (path, size, read) in [
            ("a.html", 512 << 10, true),
            ("a.HTM", (512 << 10) + 1, false),
            ("s/a.css", 4 << 20, true),
            ("s/a.css", (4 << 20) + 1, false),
            ("_redirects", 64 << 10, true),
            ("dist/_headers", 1, true),
            ("_headers", (64 << 10) + 1, false),
            ("a.js", 1, false),
        ] {
            assert_eq!(is_read(path, size), read, "{path}");
        }
    }
}
