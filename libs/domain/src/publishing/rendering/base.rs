//! Inserts a `<base>` into a page that is served at another URL than its own, so that relative references still work.

use std::cell::Cell;

use lol_html::{RewriteStrSettings, element, rewrite_str};

/// Elements that may precede or accompany a `<base>` in a head.
const IN_HEAD: [&str; 8] = ["html", "head", "title", "meta", "link", "style", "script", "noscript"];

/// Returns the document with a `<base>` of its own URL, unless it has one. Parses only the head.
pub fn at(html: &str, address: &str) -> String {
    let Some(position) = place_of_base(html) else { return html.to_owned() };
    let base = format!(r#"<base href="{}">"#, html_escape::encode_double_quoted_attribute(address));
    format!("{}{base}{}", &html[..position], &html[position..])
}

/// Returns the position for a `<base>` before everything that it affects; `None` if the document has one.
fn place_of_base(html: &str) -> Option<usize> {
    let (position, found) = (Cell::new(None), Cell::new(false));
    let settings = RewriteStrSettings::new().append_element_content_handler(element!("*", |element| {
        let at = element.source_location().bytes();
        let tag = element.tag_name();
        match tag.as_str() {
            // A doctype is one only at the very beginning.
            "html" | "head" => position.set(Some(at.end)),
            "base" => found.set(element.has_attribute("href")),
            _ if position.get().is_none() => position.set(Some(at.start)),
            _ => {}
        }
        let goes_on = !found.get() && IN_HEAD.contains(&tag.as_str());
        if goes_on { Ok(()) } else { Err("the head is over".into()) }
    }));
    // The parser is stopped with an error.
    let _read = rewrite_str(html, settings);
    (!found.get()).then(|| position.get().unwrap_or(html.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = r#"<base href="https://a.test/x">"#;

    #[test]
    fn a_base_follows_the_doctype_and_precedes_all_references() {
        for (html, expected) in [
            (
                "<!doctype html><html><head><title>x</title></head>",
                "<!doctype html><html><head>BASE<title>x</title></head>",
            ),
            ("<!doctype html><link href=a><p>x", "<!doctype html>BASE<link href=a><p>x"),
            ("<!doctype html><html lang=de><body>x", "<!doctype html><html lang=de>BASE<body>x"),
            ("<!-- <head> --><h1>x</h1><head>", "<!-- <head> -->BASE<h1>x</h1><head>"),
            ("only text", "only textBASE"),
            ("", "BASE"),
        ] {
            assert_eq!(at(html, "https://a.test/x"), expected.replace("BASE", BASE), "{html}");
        }
    }

    #[test]
    fn a_page_with_its_own_base_is_unchanged() {
        for html in ["<head><title>x</title><base href=/docs/></head>", "<base href='..'><p>x"] {
            assert_eq!(at(html, "https://a.test/x"), html);
        }
        let only_target = "<head><base target=_blank></head>";
        assert_eq!(at(only_target, "https://a.test/x"), format!("<head>{BASE}<base target=_blank></head>"));
    }

    #[test]
    fn a_url_can_not_leave_its_attribute() {
        let html = at("<p>x", "https://a.test/\"><script>");
        assert_eq!(html, "<base href=\"https://a.test/&quot;&gt;&lt;script&gt;\"><p>x");
    }
}
