//! A page shown at another address than its own: what it refers to is found all the same.

use std::cell::Cell;

use lol_html::{RewriteStrSettings, element, rewrite_str};

/// What may stand in a head, before or beside a `<base>`.
const IN_HEAD: [&str; 8] = ["html", "head", "title", "meta", "link", "style", "script", "noscript"];

/// The document with a `<base>` that says its own address, unless it has one. It is read only as far as its head goes.
pub fn at(html: &str, address: &str) -> String {
    let Some(place) = place_of_base(html) else { return html.to_owned() };
    let base = format!(r#"<base href="{}">"#, html_escape::encode_double_quoted_attribute(address));
    format!("{}{base}{}", &html[..place], &html[place..])
}

/// Where a `<base>` comes before everything it is for; `None` if there is one.
fn place_of_base(html: &str) -> Option<usize> {
    let (place, found) = (Cell::new(None), Cell::new(false));
    let settings = RewriteStrSettings::new().append_element_content_handler(element!("*", |element| {
        let at = element.source_location().bytes();
        let tag = element.tag_name();
        match tag.as_str() {
            // Behind a doctype, which is only one at the very beginning.
            "html" | "head" => place.set(Some(at.end)),
            "base" => found.set(element.has_attribute("href")),
            _ if place.get().is_none() => place.set(Some(at.start)),
            _ => {}
        }
        let goes_on = !found.get() && IN_HEAD.contains(&tag.as_str());
        if goes_on { Ok(()) } else { Err("the head is over".into()) }
    }));
    // An error is how the reading is ended.
    let _read = rewrite_str(html, settings);
    (!found.get()).then(|| place.get().unwrap_or(html.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = r#"<base href="https://a.test/x">"#;

    #[test]
    fn a_base_comes_before_all_it_is_for_and_after_the_doctype() {
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
    fn a_page_with_a_base_of_its_own_is_left_alone() {
        for html in ["<head><title>x</title><base href=/docs/></head>", "<base href='..'><p>x"] {
            assert_eq!(at(html, "https://a.test/x"), html);
        }
        let only_target = "<head><base target=_blank></head>";
        assert_eq!(at(only_target, "https://a.test/x"), format!("<head>{BASE}<base target=_blank></head>"));
    }

    #[test]
    fn an_address_can_not_leave_its_attribute() {
        let html = at("<p>x", "https://a.test/\"><script>");
        assert_eq!(html, "<base href=\"https://a.test/&quot;&gt;&lt;script&gt;\"><p>x");
    }
}
