//! Paths within a zip, and the slugs that pages get of them.

use crate::pages;

/// Most bytes of a path.
const PATH_BYTES_MAX: usize = 1_000;

/// Why an entry's name is no path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoPath {
    /// It isn't UTF-8.
    #[error("its name is not UTF-8")]
    NotUtf8,
    /// It holds a NUL or another control character.
    #[error("its name has a control character")]
    Control,
    /// It holds a backslash.
    #[error("its name has a backslash; folders are separated by `/`")]
    Backslash,
    /// It begins at a root.
    #[error("its path is absolute")]
    Absolute,
    /// It leads out of the folder.
    #[error("its path leads upwards by `..`")]
    Upwards,
    /// It is empty, or too long.
    #[error("its path is empty or longer than {PATH_BYTES_MAX} bytes")]
    Length,
}

/// The path of an entry, by its name: without `.` and doubled slashes.
///
/// # Errors
/// [`NoPath`].
pub fn read(name: &[u8]) -> Result<String, NoPath> {
    let name = std::str::from_utf8(name).map_err(|_| NoPath::NotUtf8)?;
    if name.chars().any(char::is_control) {
        return Err(NoPath::Control);
    }
    if name.contains('\\') {
        return Err(NoPath::Backslash);
    }
    let has_drive = name.as_bytes().get(1) == Some(&b':') && name.as_bytes()[0].is_ascii_alphabetic();
    if name.starts_with('/') || has_drive {
        return Err(NoPath::Absolute);
    }
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(NoPath::Upwards);
    }
    let path = parts.join("/");
    if path.is_empty() || path.len() > PATH_BYTES_MAX { Err(NoPath::Length) } else { Ok(path) }
}

/// Whether a path is one of those that macOS and Windows leave in zips.
pub fn is_junk(path: &str) -> bool {
    let name = name_of(path);
    path.split('/').any(|part| part == "__MACOSX")
        || matches!(name, ".DS_Store" | "Thumbs.db" | "desktop.ini")
        || name.starts_with("._")
}

/// Whether a file is a page.
pub fn is_page(path: &str) -> bool {
    let name = name_of(path).to_ascii_lowercase();
    name.ends_with(".html") || name.ends_with(".htm")
}

/// The slug of a page at that path of the site: without its ending, in lower case, and with `-` for what slugs
/// can't have. It may still be none, being too short or too long.
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

/// The last part of a path.
pub fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leads_elsewhere_is_no_path() {
        for (name, why) in [
            (b"../a".as_slice(), NoPath::Upwards),
            (b"a/../../b", NoPath::Upwards),
            (b"/etc/passwd", NoPath::Absolute),
            (b"C:/a", NoPath::Absolute),
            (b"a\\b", NoPath::Backslash),
            (b"a\0b", NoPath::Control),
            (b"a\nb", NoPath::Control),
            (b"\xff", NoPath::NotUtf8),
            (b"", NoPath::Length),
            (b"./", NoPath::Length),
            (&[b'a'; 1_001], NoPath::Length),
        ] {
            assert_eq!(read(name), Err(why), "{:?}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn a_path_is_written_in_one_way() {
        for (name, path) in [("a/b.html", "a/b.html"), ("./a//b", "a/b"), ("a/./b/", "a/b"), ("..a", "..a")] {
            assert_eq!(read(name.as_bytes()).as_deref(), Ok(path));
        }
    }

    #[test]
    fn slugs_are_made_of_paths() {
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
    fn what_systems_leave_behind_is_junk() {
        for junk in ["__MACOSX/a/._b", ".DS_Store", "a/.DS_Store", "a/._b", "Thumbs.db"] {
            assert!(is_junk(junk), "{junk}");
        }
        assert!(!is_junk("a/_b") && !is_junk(".well-known/x"));
    }
}
