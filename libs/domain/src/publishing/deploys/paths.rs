//! Paths in a zip, and the slugs of its pages.

use crate::pages;

/// Maximum length of a path, in bytes.
const PATH_BYTES_MAX: usize = 1_000;

/// Why an entry's name is no valid path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Not UTF-8.
    #[error("its name is not UTF-8")]
    NotUtf8,
    /// Contains NUL or another control character.
    #[error("its name has a control character")]
    Control,
    /// Contains a backslash.
    #[error("its name has a backslash; folders are separated by `/`")]
    Backslash,
    /// Absolute.
    #[error("its path is absolute")]
    Absolute,
    /// Leads out of the folder.
    #[error("its path leads upwards by `..`")]
    Upwards,
    /// Empty or too long.
    #[error("its path is empty or longer than {PATH_BYTES_MAX} bytes")]
    Length,
}

/// Returns the normalized path of an entry's name, without `.` and double slashes.
pub fn read(name: &[u8]) -> Result<String, PathError> {
    let name = std::str::from_utf8(name).map_err(|_| PathError::NotUtf8)?;
    if name.chars().any(char::is_control) {
        return Err(PathError::Control);
    }
    if name.contains('\\') {
        return Err(PathError::Backslash);
    }
    let has_drive = name.as_bytes().get(1) == Some(&b':') && name.as_bytes()[0].is_ascii_alphabetic();
    if name.starts_with('/') || has_drive {
        return Err(PathError::Absolute);
    }
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(PathError::Upwards);
    }
    let path = parts.join("/");
    if path.is_empty() || path.len() > PATH_BYTES_MAX { Err(PathError::Length) } else { Ok(path) }
}

/// Returns whether macOS or Windows added the file to the zip.
pub fn is_junk(path: &str) -> bool {
    let name = name_of(path);
    path.split('/').any(|part| part == "__MACOSX")
        || matches!(name, ".DS_Store" | "Thumbs.db" | "desktop.ini")
        || name.starts_with("._")
}

/// Returns whether a file is a page.
pub fn is_page(path: &str) -> bool {
    let name = name_of(path).to_ascii_lowercase();
    name.ends_with(".html") || name.ends_with(".htm")
}

/// Returns the slug of a page's path: without extension, in lower case, and with `-` in place of invalid characters.
/// It may still be too short or too long.
pub fn slug_of(path: &str) -> String {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem).to_lowercase();
    let stem = match stem.rsplit_once('/') {
        Some((folder, pages::INDEX)) => folder,
        _ => &stem,
    };
    let mut slug = String::with_capacity(stem.len());
    for c in stem.chars() {
        match c {
            '/' | 'a'..='z' | '0'..='9' => slug.push(c),
            _ if slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug
}

/// Returns the last segment of a path.
pub fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_paths_that_leave_the_folder() {
        for (name, why) in [
            (b"../a".as_slice(), PathError::Upwards),
            (b"a/../../b", PathError::Upwards),
            (b"/etc/passwd", PathError::Absolute),
            (b"C:/a", PathError::Absolute),
            (b"a\\b", PathError::Backslash),
            (b"a\0b", PathError::Control),
            (b"a\nb", PathError::Control),
            (b"\xff", PathError::NotUtf8),
            (b"", PathError::Length),
            (b"./", PathError::Length),
            (&[b'a'; 1_001], PathError::Length),
        ] {
            assert_eq!(read(name), Err(why), "{:?}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn a_path_is_normalized() {
        for (name, path) in [("a/b.html", "a/b.html"), ("./a//b", "a/b"), ("a/./b/", "a/b"), ("..a", "..a")] {
            assert_eq!(read(name.as_bytes()).as_deref(), Ok(path));
        }
    }

    #[test]
    fn slugs_are_derived_from_paths() {
        for (path, slug) in [
            ("index.html", "index"),
            ("a/index.html", "a"),
            ("a/INDEX.HTM", "a"),
            ("404.html", "404"),
            ("Docs/Getting Started!.html", "docs/getting-started-"),
            ("a.b/c_d.html", "a-b/c-d"),
            ("größe.html", "gr-e"),
        ] {
            assert_eq!(slug_of(path), slug, "{path}");
        }
    }

    #[test]
    fn files_of_operating_systems_are_junk() {
        for junk in ["__MACOSX/a/._b", ".DS_Store", "a/.DS_Store", "a/._b", "Thumbs.db"] {
            assert!(is_junk(junk), "{junk}");
        }
        assert!(!is_junk("a/_b") && !is_junk(".well-known/x"));
    }
}
