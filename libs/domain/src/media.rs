//! What bytes are: as somebody says, as they look, and as they may be shown.

/// How many bytes of a file's beginning are looked at.
pub const SNIFFED_BYTES: usize = 4_096;

/// Names for the same thing: what people say, and what [`sniff`] says.
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

/// How documents begin that browsers would run (WHATWG MIME Sniffing, 7.1), without their `<`.
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

/// How a media type is written, as a regular expression; parameters may follow.
pub const ESSENCE_PATTERN: &str = "^[A-Za-z0-9!#$&^_.+-]{1,80}/[A-Za-z0-9!#$&^_.+-]{1,80}(;.*)?$";

/// `type/subtype` of what somebody says in a `Content-Type`, in lower case and without parameters; none if it
/// can't be read.
pub fn essence(content_type: &str) -> Option<String> {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (kind, subtype) = essence.split_once('/')?;
    let is_token = |part: &str| {
        (1..=80).contains(&part.len())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c))
    };
    (is_token(kind) && is_token(subtype)).then_some(essence)
}

/// What a file looks like by its beginning; none if by nothing that is known.
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
    // Its guesses at texts are rougher than these.
    infer::get(head).map(|found| found.mime_type()).filter(|found| !found.starts_with("text/"))
}

/// What bytes that begin so look like, if it is something else than was declared.
///
/// # Errors
/// What they look like.
pub fn check_agrees(declared: &str, head: &[u8]) -> Result<(), &'static str> {
    let looks = sniff(head);
    let declared = canonical(declared);
    let kind = declared.split('/').next().unwrap_or_default();
    let of_kind =
        |kinds: &[&str]| looks.is_some_and(|looks| kinds.iter().any(|kind| looks.starts_with(kind)));
    let agrees = match declared {
        // It is shown as nothing at all.
        "application/octet-stream" => true,
        "image/svg+xml" => looks == Some("image/svg+xml"),
        "text/html" | "application/xhtml+xml" => {
            matches!(looks, Some("text/html" | "text/xml" | "image/svg+xml")) || is_plain_text(head, looks)
        }
        "application/pdf" | "application/zip" | "application/gzip" => looks == Some(declared),
        _ if declared.ends_with("/xml") || declared.ends_with("+xml") => {
            matches!(looks, Some("text/xml")) || is_plain_text(head, looks)
        }
        _ if is_text(declared) => is_plain_text(head, looks),
        _ if kind == "image" => looks.is_some_and(|looks| canonical(looks) == declared),
        // Containers are shared between sound and film.
        _ if kind == "audio" || kind == "video" => of_kind(&["audio/", "video/", "application/ogg"]),
        _ if kind == "font" || declared.contains("font") => {
            of_kind(&["font/", "application/font", "application/vnd.ms-font"])
        }
        // A kind nobody here knows: anything but what a browser would run.
        _ => !matches!(looks, Some("text/html" | "image/svg+xml")),
    };
    if agrees { Ok(()) } else { Err(looks.unwrap_or("something else")) }
}

/// Whether two essences are names of the same thing.
pub fn is_same(one: &str, other: &str) -> bool {
    canonical(one) == canonical(other)
}

fn canonical(essence: &str) -> &str {
    ALIASES.iter().find(|(said, _)| *said == essence).map_or(essence, |(_, is)| is)
}

fn is_text(essence: &str) -> bool {
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || matches!(essence, "application/json" | "application/manifest+json" | "application/ecmascript")
}

fn is_plain_text(head: &[u8], looks: Option<&str>) -> bool {
    looks.is_none() && !head.contains(&0)
}

/// What a file is by its name.
pub fn by_name(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        // As the standard has it; others still call it an application.
        "js" | "mjs" => "text/javascript",
        "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        _ => mime_guess::from_path(path).first_raw().unwrap_or("application/octet-stream"),
    }
}

/// Whether an essence is of an image or a font: what a site's pages embed by itself.
pub fn is_image_or_font(essence: &str) -> bool {
    essence.starts_with("image/")
        || essence.starts_with("font/")
        || essence.contains("font-")
        || essence == "application/vnd.ms-fontobject"
}

/// How an asset is shown: under which `Content-Type`, and whether only to be saved.
///
/// Scripts, HTML and XML are handed out as text to be saved. An SVG stays what it is, so that pages can embed it;
/// what it would run is kept down by the policy it is sent with.
pub fn shown_as(essence: &str) -> (String, bool) {
    let essence = canonical(essence);
    match essence {
        "image/svg+xml" => (essence.to_owned(), false),
        "text/html"
        | "text/javascript"
        | "text/xml"
        | "text/xsl"
        | "application/xml"
        | "application/xhtml+xml"
        | "application/ecmascript"
        | "text/ecmascript" => ("text/plain; charset=utf-8".to_owned(), true),
        _ if essence.ends_with("+xml") => ("text/plain; charset=utf-8".to_owned(), true),
        "application/wasm" | "application/x-shockwave-flash" => ("application/octet-stream".to_owned(), true),
        // Their parts say themselves what they are, and browsers believe some of them.
        _ if essence.starts_with("multipart/") || essence.starts_with("message/") => {
            ("application/octet-stream".to_owned(), true)
        }
        _ if essence.starts_with("text/") => (format!("{essence}; charset=utf-8"), false),
        _ => (essence.to_owned(), false),
    }
}

/// What a site's own file is sent as: texts are UTF-8.
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
    fn what_agrees_is_taken() {
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
    fn what_does_not_agree_is_named() {
        for (declared, head, looks) in [
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
            assert_eq!(check_agrees(declared, head), Err(looks), "{declared}");
        }
    }

    #[test]
    fn nothing_that_runs_is_shown_as_what_it_is() {
        for active in
            ["text/html", "application/javascript", "application/xml", "text/xsl", "application/rss+xml"]
        {
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
    fn files_are_known_by_their_names() {
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
    fn a_content_type_is_read_without_its_parameters() {
        assert_eq!(essence("Text/HTML; charset=x").as_deref(), Some("text/html"));
        for wrong in ["", "png", "image/", "/png", "image/p ng", "image/png\r\nx: y", "a/b/c"] {
            assert_eq!(essence(wrong), None, "{wrong}");
        }
    }
}
