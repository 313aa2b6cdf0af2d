//! Tests with pages as static site generators write them.

use std::collections::BTreeMap;

use super::*;
use crate::deploys::links::Target;

fn links() -> Links {
    let by_content = |address: &str| Target::ByContent(format!("https://assets.test/{address}"));
    let targets = [
        ("index.html", Target::AtPath),
        ("a/index.html", Target::AtPath),
        ("b.html", Target::AtPath),
        ("img/x.png", by_content("11/x.png")),
        ("img/y,z.png", by_content("22/y,z.png")),
        ("img/i.svg", by_content("33/i.svg")),
        ("f.woff2", by_content("44/f.woff2")),
        ("app.js", Target::AtPath),
        ("app.css", Target::Rewritten { integrity: "sha384-new".to_owned() }),
        ("plain.css", Target::AtPath),
        ("m.webmanifest", Target::AtPath),
        ("v.mp4", Target::AtPath),
    ];
    let targets: BTreeMap<_, _> =
        targets.into_iter().map(|(path, target)| (path.to_owned(), target)).collect();
    Links::new(targets)
}

fn at(document: &str, html: &str) -> Rewritten {
    rewrite(document, html, &links()).unwrap()
}

#[test]
fn every_kind_of_reference_to_an_image_or_a_font_is_rewritten() {
    let x = "https://assets.test/11/x.png";
    for (html, expected) in [
        ("<img src=../img/x.png alt=x>", format!("<img src=\"{x}\" alt=x>")),
        ("<img src='../img/x.png'>", format!("<img src=\"{x}\">")),
        ("<IMG SRC=\"../img/x.png\">", format!("<IMG SRC=\"{x}\">")),
        (
            "<img srcset='../img/x.png 1x, ../img/y,z.png 2x'>",
            format!("<img srcset=\"{x} 1x, https://assets.test/22/y,z.png 2x\">"),
        ),
        (
            "<source srcset='../img/x.png, /img/i.svg 100w'>",
            format!("<source srcset=\"{x}, https://assets.test/33/i.svg 100w\">"),
        ),
        (
            "<video poster=/img/x.png src=/v.mp4></video>",
            format!("<video poster=\"{x}\" src=/v.mp4></video>"),
        ),
        ("<link rel=icon href=/img/x.png>", format!("<link rel=icon href=\"{x}\">")),
        (
            "<link rel=preload as=font href=../f.woff2 crossorigin>",
            "<link rel=preload as=font href=\"https://assets.test/44/f.woff2\" crossorigin>".to_owned(),
        ),
        (
            "<link rel=preload as=image imagesrcset='/img/x.png 1x'>",
            format!("<link rel=preload as=image imagesrcset=\"{x} 1x\">"),
        ),
        (
            "<svg><use href='../img/i.svg#a'/><image xlink:href=../img/x.png /></svg>",
            format!("<svg><use href='../img/i.svg#a'/><image xlink:href=\"{x}\" /></svg>"),
        ),
        ("<meta property=og:image content=/img/x.png>", format!("<meta property=og:image content=\"{x}\">")),
        ("<p style=\"background:url('../img/x.png')\">", format!("<p style=\"background:url({x})\">")),
        ("<style>a{b:url(../img/x.png)}</style>", format!("<style>a{{b:url({x})}}</style>")),
        ("<td background=../img/x.png>", format!("<td background=\"{x}\">")),
    ] {
        assert_eq!(at("a/index.html", html).html, expected);
    }
}

#[test]
fn every_other_reference_stays_as_it_was_written() {
    for html in [
        "<link rel=stylesheet href=../app.css>",
        "<link rel=manifest href=../m.webmanifest>",
        "<script type=module src=../app.js></script>",
        "<a href=../b.html#x>",
        "<a href=../>",
        "<a href=/img/x.png>",
        "<a href='../b.html?a=1&amp;b=2'>",
        "<form action=../b.html?q>",
        "<iframe src=../b.html></iframe>",
        "<object data=../img/i.svg></object>",
        "<img srcset='https://x.test/a.png 1x,  none.png 2x'>",
        "<style>a { b : url( none.png ) }</style>",
    ] {
        assert_eq!(at("a/index.html", html).html, html);
    }
}

#[test]
fn references_to_other_sites_are_unchanged() {
    let html = "<!DOCTYPE html><a href='https://x.test/?a&amp;b'>x</a><img src=data:image/gif;base64,R0== >\
        <a href='#x'><a href=mailto:a@b.co><link rel=canonical href=https://x.test/><style>a{b:c}</style>\
        <script>var a = '<img src=img/x.png>';</script><!-- <img src=img/x.png> --><meta name=d content=b.html>";
    assert_eq!(at("index.html", html).html, html);
}

#[test]
fn a_base_is_applied_and_stays() {
    let html = "<base href=\"/img/\"><img src=x.png><a href=../b.html>";
    let expected = "<base href=\"/img/\"><img src=\"https://assets.test/11/x.png\"><a href=../b.html>";
    assert_eq!(at("a/index.html", html).html, expected);
    let foreign = "<base href=\"https://x.test/\"><img src=x.png>";
    assert_eq!(at("a/index.html", foreign).html, foreign);
}

#[test]
fn the_title_is_the_pages_and_not_that_of_an_svg() {
    for (html, title) in [
        ("<title>A &amp; B\n  &eacute;</title>", "A & B é"),
        ("<svg><title>no</title></svg><title>yes</title>", "yes"),
        ("<title>one</title><title>two</title>", "one"),
        ("<p>none", ""),
    ] {
        assert_eq!(at("index.html", html).title, title, "{html}");
    }
}

#[test]
fn each_missing_path_is_reported_once() {
    let html =
        "<img src=no.png><img src=no.png><script src=/no.js></script><a href=b2.html><img data-src=lazy.png>";
    let rewritten = at("a/index.html", html);
    assert_eq!(rewritten.missing.into_iter().collect::<Vec<_>>(), ["a/no.png", "no.js"]);
    assert!(rewritten.html.contains("data-src=lazy.png"), "a script may make something else of it");
}

#[test]
fn a_page_with_its_own_policy_keeps_image_paths() {
    let html = "<meta http-equiv=Content-Security-Policy content=\"img-src 'self'\"><img src=img/x.png>";
    assert_eq!(at("index.html", html).html, html);
}

#[test]
fn only_the_digest_of_a_rewritten_style_sheet_is_replaced() {
    let html = "<link rel=stylesheet integrity=sha256-x href=app.css>\
        <link rel=stylesheet integrity=sha256-y href=plain.css><script integrity=sha256-z src=app.js></script>";
    assert_eq!(at("index.html", html).html, html.replace("integrity=sha256-x", "integrity=\"sha384-new\""));
}

#[test]
fn a_malformed_page_is_parsed_as_browsers_do() {
    for html in [
        "<img src=img/x.png",
        "<a href=\"b.html",
        "<div><p></div></p>",
        "<style>a{b:url(img/x.png",
        "\u{feff}<p>",
    ] {
        assert!(rewrite("index.html", html, &links()).is_ok(), "{html}");
    }
}

#[test]
fn a_very_long_base_leaves_references_as_they_are() {
    let html = format!("<base href=\"{}/\">{}", "a".repeat(100_000), "<img src=x>".repeat(10_000));
    let rewritten = at("index.html", &html);
    assert_eq!((rewritten.html, rewritten.missing.len()), (html, 0));
}

#[test]
fn rewriting_stops_when_the_page_exceeds_its_limit() {
    let address = format!("https://assets.test/{}/x", "a".repeat(900));
    let to_long = Links::new(BTreeMap::from([("x".to_owned(), Target::ByContent(address))]));
    for html in [
        "<img src=x>".repeat(40_000),
        format!("<img srcset=\"{}\">", "x, ".repeat(150_000)),
        format!("<p style=\"{}\">", "a:url(x);".repeat(50_000)),
        format!("<style>{}</style>", "a{b:url(x)}".repeat(40_000)),
    ] {
        let rewritten = rewrite("index.html", &html, &to_long);
        assert_eq!(rewritten, Err(RewriteError::TooLarge), "{}", &html[..20]);
    }
    let long = "<p>x</p>".repeat(80_000);
    assert_eq!(rewrite("index.html", &long, &links()), Err(RewriteError::TooLarge), "without references too");
}

#[test]
fn a_page_that_takes_the_parser_too_much_memory_is_rejected() {
    let nested = "<a>".repeat(174_000);
    let rejected = rewrite("index.html", &nested, &links()).unwrap_err();
    assert!(rejected.to_string().contains("memory limit"), "{rejected}");
}

#[test]
fn only_the_first_of_several_attributes_with_the_same_name_is_rewritten() {
    let rewritten = at("index.html", "<img src=https://x.test/a.png src=img/x.png>");
    assert_eq!(rewritten.html, "<img src=https://x.test/a.png src=img/x.png>");
    let repeated = format!("<img {}>", "src=none.png ".repeat(20_000));
    assert_eq!(at("index.html", &repeated).missing.len(), 1);
}
