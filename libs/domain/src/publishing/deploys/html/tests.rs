//! Tests with pages as static site generators write them.

use std::collections::BTreeMap;

use super::*;
use crate::deploys::links::Target;

fn links() -> Links {
    let file = |by_content: &str| {
        Target::File((!by_content.is_empty()).then(|| format!("https://assets.test/{by_content}")))
    };
    let targets = [
        ("index.html", Target::Page("index".to_owned())),
        ("a/index.html", Target::Page("a".to_owned())),
        ("b.html", Target::Page("bb".to_owned())),
        ("img/x.png", file("11/x.png")),
        ("img/y,z.png", file("22/y,z.png")),
        ("img/i.svg", file("33/i.svg")),
        ("f.woff2", file("44/f.woff2")),
        ("app.js", file("")),
        ("app.css", file("")),
        ("m.webmanifest", file("")),
        ("v.mp4", file("")),
    ];
    let targets: BTreeMap<_, _> =
        targets.into_iter().map(|(path, target)| (path.to_owned(), target)).collect();
    Links::new(targets)
}

fn at(document: &str, html: &str) -> Rewritten {
    rewrite(document, html, &links()).unwrap()
}

#[test]
fn every_kind_of_reference_is_rewritten() {
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
            format!("<video poster=\"{x}\" src=\"/v.mp4\"></video>"),
        ),
        ("<link rel=stylesheet href=../app.css>", "<link rel=stylesheet href=\"/app.css\">".to_owned()),
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
            "<link rel=manifest href=../m.webmanifest>",
            "<link rel=manifest href=\"/m.webmanifest\">".to_owned(),
        ),
        (
            "<script type=module src=../app.js></script>",
            "<script type=module src=\"/app.js\"></script>".to_owned(),
        ),
        ("<a href=../b.html#x>", "<a href=\"/bb#x\">".to_owned()),
        ("<a href=../>", "<a href=\"/\">".to_owned()),
        ("<a href=/img/x.png>", "<a href=\"/img/x.png\">".to_owned()),
        ("<form action=../b.html?q>", "<form action=\"/bb?q\">".to_owned()),
        ("<iframe src=../b.html></iframe>", "<iframe src=\"/bb\"></iframe>".to_owned()),
        ("<object data=../img/i.svg></object>", "<object data=\"/img/i.svg\"></object>".to_owned()),
        (
            "<svg><use href='../img/i.svg#a'/><image xlink:href=../img/x.png /></svg>",
            format!("<svg><use href=\"/img/i.svg#a\" /><image xlink:href=\"{x}\" /></svg>"),
        ),
        ("<meta property=og:image content=/img/x.png>", format!("<meta property=og:image content=\"{x}\">")),
        ("<p style=\"background:url('../img/x.png')\">", format!("<p style=\"background:url({x})\">")),
        ("<style>a{b:url(../img/x.png)}</style>", format!("<style>a{{b:url({x})}}</style>")),
        ("<td background=../img/x.png>", format!("<td background=\"{x}\">")),
        ("<a href='../b.html?a=1&amp;b=2'>", "<a href=\"/bb?a=1&amp;b=2\">".to_owned()),
    ] {
        assert_eq!(at("a/index.html", html).html, expected);
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
fn a_base_is_applied_and_removed() {
    let html = "<base href=\"/img/\"><img src=x.png><a href=../b.html>";
    let expected = "<base><img src=\"https://assets.test/11/x.png\"><a href=\"/bb\">";
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
    assert!(at("index.html", html).html.ends_with("<img src=\"/img/x.png\">"));
}

#[test]
fn the_digest_of_a_rewritten_style_sheet_is_removed_and_that_of_a_script_stays() {
    let html = "<link rel=stylesheet integrity=sha256-x href=app.css><script integrity=sha256-y src=app.js></script>";
    let written = at("index.html", html).html;
    assert!(!written.contains("sha256-x") && written.contains("sha256-y"), "{written}");
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
    let deep = "a/".repeat(490) + "index.html";
    for html in [
        "<img src=x>".repeat(40_000),
        format!("<img srcset=\"{}\">", "x, ".repeat(150_000)),
        format!("<p style=\"{}\">", "a:url(x);".repeat(50_000)),
        format!("<style>{}</style>", "a{b:url(x)}".repeat(40_000)),
    ] {
        assert_eq!(rewrite(&deep, &html, &links()), Err(RewriteError::TooLarge), "{}", &html[..20]);
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
