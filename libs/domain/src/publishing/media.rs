//! Media types: as declared, as sniffed from the content, and as served.

/// Number of bytes at the start of a file that are sniffed.
pub const SNIFFED_BYTES: usize = 4_096;

/// Aliases of media types: the declared name, and the name that [`sniff`] returns.
const ALIASES: [(&str, &str); 13] = [
    ("image/jpg", "image/jpeg"),
    ("image/pjpeg", "image/jpeg"),
    ("image/x-png", "image/png"),
    ("image/x-icon", "image/vnd.microsoft.icon"),
    ("image/ico", "image/vnd.microsoft.icon"),
    ("image/tif", "image/tiff"),
    ("image/x-ms-bmp", "image/bmp"),
    ("image/heic", "image/heif"),
    ("application/x-pdf", "application/pdf"),
    ("application/x-zip-compressed", "application/zip"),
    ("application/x-gzip", "application/gzip"),
    ("application/javascript", "text/javascript"),
    ("application/x-javascript", "text/javascript"),
];

/// Beginnings of documents that browsers treat as HTML (WHATWG MIME Sniffing, 7.1), without their `<`.
const HTML_BEGINNINGS: [&str; 17] = [
    "!doctype html",
    "html",
    "head",
    "script",
    "iframe",
    "h1",
    "div",
    "font",
    "table",
    "a",
    "style",
    "title",
    "b",
    "body",
    "br",
    "p",
    "!--",
];

/// The JavaScript types that browsers run (WHATWG MIME Sniffing, 4.6), in lower case.
const SCRIPTS: [&str; 16] = [
    "application/ecmascript",
    "application/javascript",
    "application/x-ecmascript",
    "application/x-javascript",
    "text/ecmascript",
    "text/javascript",
    "text/javascript1.0",
    "text/javascript1.1",
    "text/javascript1.2",
    "text/javascript1.3",
    "text/javascript1.4",
    "text/javascript1.5",
    "text/jscript",
    "text/livescript",
    "text/x-ecmascript",
    "text/x-javascript",
];

/// Regular expression of a media type; parameters may follow.
pub const ESSENCE_PATTERN: &str = "^[A-Za-z0-9!#$&^_.+-]{1,80}/[A-Za-z0-9!#$&^_.+-]{1,80}(;.*)?$";

/// Returns `type/subtype` of a `Content-Type`, in lower case and without parameters; `None` if it is malformed.
pub fn essence(content_type: &str) -> Option<String> {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (kind, subtype) = essence.split_once('/')?;
    let is_token = |part: &str| {
        (1..=80).contains(&part.len())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c))
    };
    (is_token(kind) && is_token(subtype)).then_some(essence)
}

/// Returns the media type of a file by its first bytes; `None` if they match no known type.
pub fn sniff(head: &[u8]) -> Option<&'static str> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let text = String::from_utf8_lossy(&text[..text.len().min(1_024)]).to_ascii_lowercase();
    if let Some(rest) = text.strip_prefix('<') {
        let ends = [' ', '>', '\t', '\n', '\r', '\u{c}', '/'];
        let begins = |word: &&str| {
            let after = rest.strip_prefix(*word);
            after.is_some_and(|after| *word == "!--" || after.starts_with(ends))
        };
        if text.contains("<svg") && !rest.starts_with("!doctype html") && !rest.starts_with("html") {
            return Some("image/svg+xml");
        }
        if HTML_BEGINNINGS.iter().any(begins) {
            return Some("text/html");
        }
        if rest.starts_with("?xml") {
            return Some("text/xml");
        }
    }
    // `infer` recognizes texts less precisely than the rules below.
    infer::get(head).map(|found| found.mime_type()).filter(|found| !found.starts_with("text/"))
}

/// Checks that the first bytes of a file match its declared type. The error is the type that they have instead.
pub fn check_agrees(declared: &str, head: &[u8]) -> Result<(), &'static str> {
    let sniffed = sniff(head);
    let declared = canonical(declared);
    let kind = declared.split('/').next().unwrap_or_default();
    let of_kind =
        |kinds: &[&str]| sniffed.is_some_and(|sniffed| kinds.iter().any(|kind| sniffed.starts_with(kind)));
    let agrees = match declared {
        // This type is served as a download only.
        "application/octet-stream" => true,
        "image/svg+xml" => sniffed == Some("image/svg+xml"),
        "text/html" | "application/xhtml+xml" => {
            matches!(sniffed, Some("text/html" | "text/xml" | "image/svg+xml"))
                || is_plain_text(head, sniffed)
        }
        "application/pdf" | "application/zip" | "application/gzip" => sniffed == Some(declared),
        _ if declared.ends_with("/xml") || declared.ends_with("+xml") => {
            matches!(sniffed, Some("text/xml")) || is_plain_text(head, sniffed)
        }
        _ if is_text(declared) => is_plain_text(head, sniffed),
        _ if kind == "image" => sniffed.is_some_and(|sniffed| canonical(sniffed) == declared),
        // Audio and video share container formats.
        _ if kind == "audio" || kind == "video" => of_kind(&["audio/", "video/", "application/ogg"]),
        _ if kind == "font" || declared.contains("font") => {
            of_kind(&["font/", "application/font", "application/vnd.ms-font"])
        }
        // For an unknown type, anything is accepted except documents that browsers run.
        _ => !matches!(sniffed, Some("text/html" | "image/svg+xml")),
    };
    if agrees { Ok(()) } else { Err(sniffed.unwrap_or("something else")) }
}

/// Returns whether two media types are the same or aliases.
pub fn is_same(one: &str, other: &str) -> bool {
    canonical(one) == canonical(other)
}

fn canonical(essence: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == essence).map_or(essence, |(_, is)| is)
}

fn is_text(essence: &str) -> bool {
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || matches!(essence, "application/json" | "application/manifest+json" | "application/ecmascript")
}

fn is_plain_text(head: &[u8], sniffed: Option<&str>) -> bool {
    sniffed.is_none() && !head.contains(&0)
}

/// Returns the media type of a file by its extension.
pub fn by_name(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        // The standard's name; `mime_guess` still returns `application/javascript`.
        "js" | "mjs" => "text/javascript",
        "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        _ => mime_guess::from_path(path).first_raw().unwrap_or("application/octet-stream"),
    }
}

/// Returns whether a media type is an image or a font, which pages embed.
pub fn is_image_or_font(essence: &str) -> bool {
    essence.starts_with("image/")
        || essence.starts_with("font/")
        || essence.contains("font-")
        || essence == "application/vnd.ms-fontobject"
}

/// Returns the `Content-Type` under which an asset is served, and whether it is served as a download.
///
/// Scripts, HTML and XML are served as plain-text downloads. An SVG keeps its type, so that pages can embed it; the
/// `Content-Security-Policy` of its response prevents scripts in it.
pub fn shown_as(essence: &str) -> (String, bool) {
    let essence = canonical(essence);
    match essence {
        "image/svg+xml" => (essence.to_owned(), false),
        "text/html" | "text/xml" | "text/xsl" | "application/xml" | "application/xhtml+xml" => {
            ("text/plain; charset=utf-8".to_owned(), true)
        }
        _ if essence.ends_with("+xml") || SCRIPTS.contains(&essence) => {
            ("text/plain; charset=utf-8".to_owned(), true)
        }
        "application/wasm" | "application/x-shockwave-flash" => ("application/octet-stream".to_owned(), true),
        // Parts of multipart and message bodies declare their own types, and some browsers trust these.
        _ if essence.starts_with("multipart/") || essence.starts_with("message/") => {
            ("application/octet-stream".to_owned(), true)
        }
        _ if essence.starts_with("text/") => (format!("{essence}; charset=utf-8"), false),
        _ => (essence.to_owned(), false),
    }
}

/// Returns the `Content-Type` of a site's own file: texts are UTF-8.
pub fn with_charset(essence: &str) -> String {
    if is_text(essence) || essence.ends_with("/xml") || essence.ends_with("+xml") {
        return format!("{essence}; charset=utf-8");
    }
    essence.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01";
    const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01";
    const WOFF2: &[u8] = b"wOF2\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

    #[test]
    fn accepts_content_of_the_declared_type() {
        for (declared, head) in [
            ("image/png", PNG),
            ("image/jpg", JPEG),
            ("font/woff2", WOFF2),
            ("text/plain", b"just words < than this"),
            ("text/css", b"a{color:red}"),
            ("application/json", b"{\"a\": 1}"),
            ("image/svg+xml", b"<?xml version='1.0'?><!-- x --><svg xmlns='http://www.w3.org/2000/svg'>"),
            ("text/html", b"<!doctype html><title>x</title><svg></svg>"),
            ("text/html", b"words alone"),
            ("application/octet-stream", b"<html>"),
            ("application/pdf", b"%PDF-1.7"),
            ("text/xml", b"<?xml version='1.0'?><rss/>"),
            ("model/gltf-binary", b"glTF\x02\0\0\0"),
        ] {
            assert_eq!(check_agrees(declared, head), Ok(()), "{declared}");
        }
    }

    #[test]
    fn names_the_type_of_other_content() {
        for (declared, head, sniffed) in [
            ("image/png", JPEG, "image/jpeg"),
            ("image/png", b"<html><script>".as_slice(), "text/html"),
            ("image/png", b"nothing", "something else"),
            ("text/plain", b"  <SCRIPT>alert(1)", "text/html"),
            ("text/plain", b"\xef\xbb\xbf<svg onload=x>", "image/svg+xml"),
            ("text/css", PNG, "image/png"),
            ("text/plain", b"a\0b", "something else"),
            ("application/x-unknown", b"<!DOCTYPE html>", "text/html"),
            ("image/svg+xml", b"<html><svg>", "text/html"),
            ("font/woff2", PNG, "image/png"),
            ("application/pdf", b"PK\x03\x04", "application/zip"),
        ] {
            assert_eq!(check_agrees(declared, head), Err(sniffed), "{declared}");
        }
    }

    #[test]
    fn active_content_is_served_as_plain_text() {
        let documents = ["text/html", "application/xml", "text/xsl", "application/rss+xml"];
        for active in documents.into_iter().chain(SCRIPTS) {
            assert_eq!(shown_as(active), ("text/plain; charset=utf-8".to_owned(), true), "{active}");
        }
        for parts in ["multipart/x-mixed-replace", "message/rfc822"] {
            assert_eq!(shown_as(parts), ("application/octet-stream".to_owned(), true), "{parts}");
        }
        assert_eq!(shown_as("image/svg+xml"), ("image/svg+xml".to_owned(), false));
        assert_eq!(shown_as("text/css"), ("text/css; charset=utf-8".to_owned(), false));
        assert_eq!(shown_as("image/png"), ("image/png".to_owned(), false));
    }

    #[test]
    fn the_extension_determines_the_type() {
        for (path, essence) in [
            ("a/b.JS", "text/javascript"),
            ("x.min.css", "text/css"),
            ("f.woff2", "font/woff2"),
            ("i.svg", "image/svg+xml"),
            ("i.avif", "image/avif"),
            ("a.wasm", "application/wasm"),
            ("feed.xml", "text/xml"),
            ("CNAME", "application/octet-stream"),
            ("robots.txt", "text/plain"),
        ] {
            assert_eq!(by_name(path), essence, "{path}");
        }
    }

    #[test]
    fn a_content_type_is_parsed_without_its_parameters() {
        assert_eq!(essence("Text/HTML; charset=x").as_deref(), Some("text/html"));
        for wrong in ["", "png", "image/", "/png", "image/p ng", "image/png\r\nx: y", "a/b/c"] {
            assert_eq!(essence(wrong), None, "{wrong}");
        }
    }
}
