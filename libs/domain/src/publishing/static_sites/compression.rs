//! Media types whose files become smaller by compression.

/// Types besides `text/*`, fonts, `+json` and `+xml`.
const COMPRESSIBLE: [&str; 12] = [
    "application/ecmascript",
    "application/javascript",
    "application/json",
    "application/json5",
    "application/rtf",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-javascript",
    "application/x-ndjson",
    "application/xml",
    "application/xml-dtd",
    "application/yaml",
];

/// Returns whether files of a media type (`type/subtype`, without parameters) are compressed: texts, scripts, data,
/// SVG, XML, wasm, and fonts other than woff2. Images, audio, video and archives are compressed already.
pub fn is_compressible(essence: &str) -> bool {
    let essence = essence.to_ascii_lowercase();
    let is_font = essence.starts_with("font/") || essence.contains("/font-") || essence.contains("/x-font-");
    if is_font {
        return !essence.ends_with("woff2");
    }
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || COMPRESSIBLE.contains(&essence.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media;

    #[test]
    fn texts_and_uncompressed_fonts_are_compressible() {
        for name in [
            "index.html",
            "a.css",
            "a.js",
            "a.mjs",
            "a.json",
            "a.svg",
            "feed.xml",
            "a.wasm",
            "robots.txt",
            "a.md",
            "a.ttf",
            "a.otf",
            "a.eot",
            "a.woff",
            "site.webmanifest",
            "a.js.map",
            "a.xhtml",
            "feed.rss",
            "feed.atom",
            "a.csv",
            "a.vtt",
        ] {
            let essence = media::by_name(name);
            assert!(is_compressible(essence), "{name}: {essence}");
        }
        for essence in ["Text/HTML", "application/ld+json", "application/x-font-ttf", "application/font-sfnt"]
        {
            assert!(is_compressible(essence), "{essence}");
        }
    }

    #[test]
    fn compressed_formats_are_not_compressible() {
        for name in [
            "a.png", "a.jpg", "a.webp", "a.avif", "a.gif", "a.woff2", "a.mp4", "a.webm", "a.mp3", "a.zip",
            "a.gz", "a.pdf", "CNAME",
        ] {
            let essence = media::by_name(name);
            assert!(!is_compressible(essence), "{name}: {essence}");
        }
        for essence in ["application/font-woff2", "application/x-font-woff2", ""] {
            assert!(!is_compressible(essence), "{essence}");
        }
    }
}
