//! Paths of a site's files, and the request paths that ask for them.
//!
//! A site path has no leading or trailing slash, no empty segment, no `.` or `..`, no control character and no
//! backslash, and is spelled in Unicode's form NFC: macOS writes the names of files in another form than browsers
//! request them in. Both entries of a zip and requests become site paths here, so equal paths are equal texts.

use percent_encoding::{percent_decode_str, utf8_percent_encode};
use unicode_normalization::UnicodeNormalization as _;

use crate::{addresses, url_escapes};

/// Maximum length of a path, in bytes.
pub const PATH_BYTES_MAX: usize = 1_024;
/// Maximum length of a request path as sent: every byte of the path may be percent-encoded.
const SENT_BYTES_MAX: usize = 3 * PATH_BYTES_MAX + 2;
/// The folder of addresses that the platform answers on every site.
const PLATFORM_FOLDER: &str = "_wr";

/// Why a name is no site path.
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

/// Returns the site path of an entry of a zip.
pub fn of_entry(name: &[u8]) -> Result<String, PathError> {
    let name = std::str::from_utf8(name).map_err(|_| PathError::NotUtf8)?;
    let has_drive = name.as_bytes().get(1) == Some(&b':') && name.as_bytes()[0].is_ascii_alphabetic();
    if name.starts_with('/') || (has_drive && name.as_bytes().get(2) == Some(&b'/')) {
        return Err(PathError::Absolute);
    }
    let path = normalized(name)?;
    if path.is_empty() { Err(PathError::Length) } else { Ok(path) }
}

/// The path of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPath {
    path: String,
    is_folder: bool,
}

impl RequestPath {
    /// Reads a request path as sent: with its leading slash, percent-encoded, and without a query. Adjacent slashes
    /// count as one. Returns `None` if no file can have the path: it leads upwards, is too long or not UTF-8, or
    /// contains an encoded slash, a backslash or a control character.
    pub fn parse(sent: &str) -> Option<Self> {
        let path = sent.strip_prefix('/')?;
        if path.len() > SENT_BYTES_MAX || path.contains("%2f") || path.contains("%2F") {
            return None;
        }
        let decoded = percent_decode_str(path).decode_utf8().ok()?;
        let is_folder = decoded.is_empty() || decoded.ends_with('/') || decoded.ends_with("/.");
        let path = normalized(&decoded).ok()?;
        Some(Self { is_folder: is_folder || path.is_empty(), path })
    }

    /// Joins decoded segments, which may contain slashes. A trailing slash makes it a folder.
    pub(super) fn of_segments(segments: &[String]) -> Self {
        let joined = segments.join("/");
        let path = joined.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        Self { is_folder: path.is_empty() || joined.ends_with('/'), path }
    }

    /// The site path: decoded, without leading and trailing slash; empty at the site's root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether the request ends with a slash.
    pub fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// Returns whether the request is for the site's root.
    pub fn is_root(&self) -> bool {
        self.path.is_empty()
    }

    /// Returns the address of this request: the path as in a URL, with its slashes.
    pub fn address(&self) -> String {
        if self.is_folder { folder_address(&self.path) } else { address_of(&self.path) }
    }
}

/// Returns the address of a site path: percent-encoded, with a leading slash. It never starts with two slashes, so as a
/// `Location` it stays on the host.
pub fn address_of(path: &str) -> String {
    format!("/{}", utf8_percent_encode(path, url_escapes::PATH))
}

/// Returns the address of a folder, with a trailing slash.
pub fn folder_address(path: &str) -> String {
    if path.is_empty() { "/".to_owned() } else { format!("{}/", address_of(path)) }
}

/// Returns whether a site path is answered by the platform itself: `_wr/`, and the paths at which certificate
/// authorities look for a proof of control.
pub fn is_reserved(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    first == PLATFORM_FOLDER || addresses::is_reserved_path(&format!("/{path}"))
}

/// Returns the last segment of a path.
pub fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the folder of a path, without a trailing slash; empty at the top.
pub fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the number of folders above a file.
pub fn depth_of(path: &str) -> usize {
    path.matches('/').count()
}

/// Returns a path without `.`, empty segments and slashes at its ends, in NFC. It may be empty.
fn normalized(path: &str) -> Result<String, PathError> {
    if path.chars().any(char::is_control) {
        return Err(PathError::Control);
    }
    if path.contains('\\') {
        return Err(PathError::Backslash);
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(PathError::Upwards);
    }
    let path: String = parts.join("/").nfc().collect();
    if path.len() > PATH_BYTES_MAX { Err(PathError::Length) } else { Ok(path) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(sent: &str) -> Option<(String, bool)> {
        RequestPath::parse(sent).map(|request| (request.path, request.is_folder))
    }

    #[test]
    fn rejects_entries_that_leave_the_folder() {
        for (name, why) in [
            (b"../a".as_slice(), PathError::Upwards),
            (b"a/../../b", PathError::Upwards),
            (b"/etc/passwd", PathError::Absolute),
            (b"C:/a", PathError::Absolute),
            (b"a\\b", PathError::Backslash),
            (b"a\0b", PathError::Control),
            (b"a\nb", PathError::Control),
            (b"a\xc2\x85b", PathError::Control),
            (b"\xff", PathError::NotUtf8),
            (b"", PathError::Length),
            (b"./", PathError::Length),
            (&[b'a'; 1_025], PathError::Length),
        ] {
            assert_eq!(of_entry(name), Err(why), "{:?}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn entries_keep_their_names() {
        for (name, path) in [
            ("a/b.html", "a/b.html"),
            ("./a//b", "a/b"),
            ("a/./b/", "a/b"),
            ("..a", "..a"),
            ("_x/.y/Z+1 (2).html", "_x/.y/Z+1 (2).html"),
            ("v1.2.html", "v1.2.html"),
            ("日本語.html", "日本語.html"),
            ("a:b/c", "a:b/c"),
            ("gro\u{308}ße.html", "größe.html"),
            (&"a".repeat(1_024), &"a".repeat(1_024)),
        ] {
            assert_eq!(of_entry(name.as_bytes()).as_deref(), Ok(path));
        }
    }

    #[test]
    fn requests_are_decoded_once() {
        for (sent, path, is_folder) in [
            ("/", "", true),
            ("/a", "a", false),
            ("/a/", "a", true),
            ("/a%20b+c.html", "a b+c.html", false),
            ("/%E6%97%A5%E6%9C%AC%E8%AA%9E.html", "日本語.html", false),
            ("/gro%CC%88%C3%9Fe.html", "größe.html", false),
            ("/a%2520b", "a%20b", false),
            ("/100%", "100%", false),
            ("//a//b", "a/b", false),
            ("/./a/.", "a", true),
        ] {
            assert_eq!(parsed(sent), Some((path.to_owned(), is_folder)), "{sent}");
        }
    }

    #[test]
    fn a_request_can_not_leave_the_site() {
        for sent in [
            "",
            "a",
            "/..",
            "/a/../b",
            "/%2e%2e/a",
            "/%2E./a",
            "/a%2fb",
            "/%2F%2fevil",
            "/a\\b",
            "/%5cevil",
            "/a%00",
            "/a%0d%0ab",
            "/%09a",
            "/%ff",
            &format!("/{}", "a".repeat(1_025)),
            &format!("/{}", "%41".repeat(1_025)),
        ] {
            assert_eq!(parsed(sent), None, "{sent}");
        }
    }

    #[test]
    fn addresses_of_the_platform_are_reserved() {
        for path in [
            "_wr",
            "_wr/script.js",
            ".well-known/acme-challenge/x",
            ".well-known/acme-challenge",
            ".well-known/pki-validation/a/b",
        ] {
            assert!(is_reserved(path), "{path}");
        }
        for path in ["_wrap/x", "a/_wr/x", ".well-known/security.txt", ".well-known/acme-challenges", ""] {
            assert!(!is_reserved(path), "{path}");
        }
        let encoded = RequestPath::parse("/%5Fwr//collect").unwrap();
        assert!(is_reserved(encoded.path()));
    }

    #[test]
    fn parts_of_a_path() {
        assert_eq!(
            (name_of("a/b/c.html"), folder_of("a/b/c.html"), depth_of("a/b/c.html")),
            ("c.html", "a/b", 2)
        );
        assert_eq!((name_of("c"), folder_of("c"), depth_of("c")), ("c", "", 0));
    }

    proptest! {
        #[test]
        fn every_accepted_entry_answers_at_its_address(name in "(\\PC|[ %+&?#./~'\"<>]){1,40}") {
            if let Ok(path) = of_entry(name.as_bytes()) {
                prop_assert_eq!(of_entry(path.as_bytes()), Ok(path.clone()), "normal paths stay");
                let address = address_of(&path);
                prop_assert!(address.bytes().all(|byte| byte.is_ascii_graphic()), "{}", address);
                prop_assert!(!address.starts_with("//") && !address.contains(['\\', '?', '#', '"', '<']));
                let request = RequestPath::parse(&address).unwrap();
                prop_assert_eq!((request.path(), request.is_folder()), (path.as_str(), false));
                let folder = RequestPath::parse(&folder_address(&path)).unwrap();
                prop_assert_eq!((folder.path(), folder.is_folder()), (path.as_str(), true));
                prop_assert_eq!(folder.address(), folder_address(&path));
            }
        }

        #[test]
        fn no_request_reads_as_a_path_out_of_the_site(sent in "/(\\PC|[./%2eEfF5c\\\\]){0,40}") {
            if let Some(request) = RequestPath::parse(&sent) {
                let is_normal = |part: &str| !matches!(part, "" | "." | "..");
                prop_assert!(request.is_root() || request.path().split('/').all(is_normal), "{:?}", request);
                prop_assert!(!request.path().contains('\\') && !request.path().chars().any(char::is_control));
            }
        }
    }
}
