//! The `accept` rule of file fields.

use crate::media;

/// The media type of a file of unknown type.
pub const UNKNOWN: &str = "application/octet-stream";

/// Extensions of the same kind of file: a field that accepts one accepts the others.
const SAME_EXTENSIONS: [&[&str]; 5] =
    [&["jpg", "jpeg", "jpe", "jfif"], &["tif", "tiff"], &["htm", "html"], &["mpg", "mpeg"], &["yml", "yaml"]];

/// Minimum number of bytes that an unbound file counts in quotas, because even an empty file costs a row and an
/// object.
pub const WAITING_BYTES_MIN: i64 = 64 << 10;

/// Returns the media type of an uploaded file: by its extension if that is known, else as declared.
pub fn kind_of(filename: &str, declared: &str) -> String {
    match media::by_name(filename) {
        UNKNOWN => media::essence(declared).unwrap_or_else(|| UNKNOWN.to_owned()),
        by_name => by_name.to_owned(),
    }
}

/// Returns whether a field with this `accept` allows a file of that name and media type. `accept` has the syntax of
/// HTML: extensions and media types such as `image/*`, separated by commas. An empty one allows every file.
pub fn is_accepted(accept: Option<&str>, filename: &str, kind: &str) -> bool {
    let mut entries = entries(accept).peekable();
    if entries.peek().is_none() {
        return true;
    }
    let filename = filename.to_lowercase();
    entries.any(|entry| match entry.split_once('/') {
        Some(("*", "*")) => true,
        Some((of, "*")) => kind.split('/').next() == Some(of),
        Some(_) => media::is_same(&entry, kind),
        None => {
            let (_, extension) = filename.rsplit_once('.').unwrap_or_default();
            let accepted = entry.trim_start_matches('.');
            extension == accepted
                || SAME_EXTENSIONS.iter().any(|same| same.contains(&extension) && same.contains(&accepted))
        }
    })
}

/// Returns whether an `accept` restricts anything, so that the file's content must be checked against it.
pub fn is_restrictive(accept: Option<&str>) -> bool {
    entries(accept).next().is_some()
}

fn entries(accept: Option<&str>) -> impl Iterator<Item = String> {
    let separators = |c: char| c == ',' || c.is_whitespace();
    accept.unwrap_or_default().split(separators).filter(|entry| !entry.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(accept: &str, filename: &str, declared: &str) -> bool {
        is_accepted(Some(accept), filename, &kind_of(filename, declared))
    }

    #[test]
    fn an_accept_lists_extensions_and_media_types() {
        for (accept, filename, declared) in [
            ("", "a.exe", ""),
            (".pdf,.docx", "Thesis.PDF", "application/pdf"),
            ("pdf docx", "a.docx", ""),
            ("image/*", "a.png", "image/png"),
            ("image/*", "scan", "image/jpeg"),
            ("image/jpg", "a.jpeg", ""),
            ("application/pdf, image/*", "a.pdf", ""),
            ("*/*", "a", ""),
            (".jpg", "a.jpeg", ""),
            (".jpg,.png", "Scan.JPEG", "image/jpeg"),
            (".jpeg", "a.jpg", ""),
            ("jpg", "a.jfif", "image/jpeg"),
            (".tif", "a.tiff", ""),
        ] {
            assert!(takes(accept, filename, declared), "{accept} {filename}");
        }
        for (accept, filename, declared) in [
            (".pdf", "a.png", "application/pdf"),
            (".pdf", "pdf", "application/pdf"),
            ("image/*", "a.html", "image/png"),
            ("image/*", "a", "text/html"),
            ("image/png", "a.gif", "image/png"),
            (".png", "a.png.html", "image/png"),
            (".jpg", "a.png", "image/jpeg"),
            (".jpg", "jpeg", "image/jpeg"),
        ] {
            assert!(!takes(accept, filename, declared), "{accept} {filename}");
        }
    }
}
