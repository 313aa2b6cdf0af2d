//! Which files a form's field takes.

use crate::media;

/// Nobody says what it is.
pub const UNKNOWN: &str = "application/octet-stream";

/// What a file counts at least while it waits to be handed in: a row and an object cost something, however small.
pub const WAITING_BYTES_MIN: i64 = 64 << 10;

/// What a file is taken for: by its name where that says something, else as whoever sends it says.
pub fn kind_of(filename: &str, declared: &str) -> String {
    match media::by_name(filename) {
        UNKNOWN => media::essence(declared).unwrap_or_else(|| UNKNOWN.to_owned()),
        by_name => by_name.to_owned(),
    }
}

/// Whether a field with this `accept` takes a file of that name and kind. `accept` is as in HTML: extensions and
/// media types, `image/*` among them, with commas between them; one that says nothing accepts everything.
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
            extension == entry.trim_start_matches('.')
        }
    })
}

/// Whether an `accept` says anything, so that a file's bytes have something to be held against.
pub fn is_particular(accept: Option<&str>) -> bool {
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
        ] {
            assert!(!takes(accept, filename, declared), "{accept} {filename}");
        }
    }
}
