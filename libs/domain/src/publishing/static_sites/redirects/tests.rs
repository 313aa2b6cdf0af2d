//! Tests of `_redirects`: the syntax, circles, and hostile requests.

use proptest::prelude::*;

use super::*;

fn redirects(text: &str, files: &[&str]) -> (Redirects, Vec<String>) {
    let (redirects, notes) = Redirects::parse(text.as_bytes(), |path| files.contains(&path));
    (redirects, notes.iter().map(ToString::to_string).collect())
}

fn shown(found: Option<RuleMatch>) -> String {
    match found {
        Some(RuleMatch::Redirect { location, status }) => format!("{status} {location}"),
        Some(RuleMatch::Rewrite { request, status }) => format!("{status} file {}", request.address()),
        None => "none".to_owned(),
    }
}

/// Returns what the rules do with a request such as `/a?b=c`, where there is no file.
fn answer(rules: &Redirects, sent: &str) -> String {
    let (path, query) = sent.split_once('?').unwrap_or((sent, ""));
    let Some(request) = RequestPath::parse(path) else { return "no path".to_owned() };
    let query = RequestQuery::new(query);
    shown(rules.before_files(&request, &query).or_else(|| rules.after_files(&request, &query)))
}

#[test]
fn lines_have_netlifys_syntax() {
    for (line, sent, expected) in [
        ("/home /", "/home", "301 /"),
        ("  /home\t/x   302  # comment", "/home/", "302 /x"),
        ("/a /b 307", "/a?q=1&r=2", "307 /b?q=1&r=2"),
        ("/a /b?own=1#x 308", "/a?q=1", "308 /b?own=1#x"),
        ("/a /b#x", "/a?q=1", "301 /b?q=1#x"),
        ("/news/* /blog/:splat", "/news/2024/x.html", "301 /blog/2024/x.html"),
        ("/news/* /blog/:splat", "/news/a/b/", "301 /blog/a/b/"),
        ("/news/* /blog/:splat", "/news", "301 /blog/"),
        ("/news/:y/:m/:d /blog-:y-:m-:d.html", "/news/2024/1/2", "301 /blog-2024-1-2.html"),
        ("/a/:x /b/:y/:x", "/a/1", "301 /b/:y/1"),
        ("/store id=:id /blog/:id 301", "/store?id=7&ref=x", "301 /blog/7?ref=x"),
        ("/store id=:id /blog/:id 301", "/store", "none"),
        ("/ p=12 /posts/twelve", "/?p=12", "301 /posts/twelve"),
        ("/ p=12 /posts/twelve", "/?p=13", "none"),
        ("/* /index.html 200", "/any/thing", "200 file /index.html"),
        ("/en/* /en/404.html 404", "/en/x", "404 file /en/404.html"),
        ("/app/* /app/ 200!", "/app/x/y", "200 file /app/"),
        ("/x/* /y/:splat 200", "/x/a%20b", "200 file /y/a%20b"),
        ("/google https://www.google.com", "/google?q=x", "301 https://www.google.com?q=x"),
        (
            "/d/* https://docs.example.com:8443/:splat 302",
            "/d/a b",
            "302 https://docs.example.com:8443/a%20b",
        ),
        ("/ä /ö", "/%C3%A4", "301 /%C3%B6"),
        ("/%C3%A4 /b", "/a%CC%88", "301 /b"),
        ("/a /50%25 301", "/a", "301 /50%25"),
        ("/a /50%-off 301", "/a", "301 /50%25-off"),
    ] {
        let (rules, notes) = redirects(line, &[]);
        assert_eq!(notes, [""; 0], "{line}");
        assert_eq!(answer(&rules, sent), expected, "{line} {sent}");
    }
}

#[test]
fn ignored_lines_say_why() {
    for (line, reason) in [
        ("/a", "it has no target"),
        ("/a 301", "it has no target"),
        ("a /b", "a path starts with `/`"),
        ("/a b", "starts neither with `/` nor with `http://`"),
        ("https://old.example.com/* /:splat", "whole domain"),
        ("/a /b 302 Country=de", "the condition `Country` is not supported"),
        ("/a /b Language=de", "the condition `Language` is not supported"),
        ("/a /b 200! Role=admin,editor", "the condition `Role` is not supported"),
        ("/a /b 303", "the status 303 is not supported"),
        ("/a /b 2000", "is no status"),
        ("/a /b 301!!", "is no status"),
        ("/a /b moved", "is no status"),
        ("/api/* https://api.example.com/:splat 200", "never proxied"),
        ("/api/* https://api.example.com/:splat 404", "never proxied"),
        ("/a ftp://example.com/x", "starts neither with `/` nor with `http://`"),
        ("/a //evil.example", "names another host"),
        ("/a /\\evil.example", "no backslash"),
        ("/a /b/../c", "no `..`"),
        ("/x/:h https://:h/y", "no valid URL"),
        ("/x/:h https://:h.example.com/y", "no valid URL"),
        ("/x/* https://example.com:splat", "no valid URL"),
        ("/a https://user@example.com/", "no user name"),
        ("/a/:x x=:x /b", "occurs twice"),
        ("/a x /b", "one `name=value`"),
        ("/*/* /b", "only one `*`"),
        ("/:splat /b", "not `splat`"),
        ("/_wr/* /b", "reserved"),
        ("/.well-known/acme-challenge/* /b", "reserved"),
    ] {
        let (rules, notes) = redirects(&format!("# first\n\n{line}\n/ok /fine"), &[]);
        assert_eq!(notes.len(), 1, "{line}: {notes:?}");
        assert!(
            notes[0].starts_with("_redirects line 3: ") && notes[0].contains(reason),
            "{line}: {notes:?}"
        );
        assert_eq!((rules.len(), answer(&rules, "/ok")), (1, "301 /fine".to_owned()), "{line}");
    }
}

#[test]
fn forced_rules_come_before_all_others() {
    let (rules, notes) = redirects("/a /1\n/a /2 302!\n/b /3\n/b /4", &[]);
    assert_eq!(notes, [""; 0]);
    let at = |sent: &str| RequestPath::parse(sent).unwrap();
    let query = RequestQuery::new("");
    assert_eq!(shown(rules.before_files(&at("/a"), &query)), "302 /2");
    assert_eq!(shown(rules.after_files(&at("/a"), &query)), "301 /1");
    assert_eq!(shown(rules.before_files(&at("/b"), &query)), "none");
    assert_eq!(shown(rules.after_files(&at("/b"), &query)), "301 /3");
}

#[test]
fn reserved_addresses_match_no_rule() {
    let (rules, _) = redirects("/* /x 200!\n/:a/* /y 302\n/*.js /z 301!", &["x"]);
    for sent in ["/_wr/script.js", "/%5fwr/collect", "/.well-known/acme-challenge/t", "//_wr//x.js"] {
        assert_eq!(answer(&rules, sent), "none", "{sent}");
    }
}

#[test]
fn circles_are_refused() {
    for (text, ignored) in [
        ("/a /a", [1].as_slice()),
        ("/a /a/", &[1]),
        ("/a /b\n/b /a", &[2]),
        ("/a /b\n/b /c\n/c /a\n/d /a", &[3]),
        ("/* /en/:splat", &[1]),
        ("/:x /1", &[1]),
        ("/:x/y /:x/y?z=1", &[1]),
        ("/c/:id /:id\n/a /c/a", &[2]),
        ("/a /b 301\n/b /a 301!", &[1]),
        ("/a x=1 /a?x=1", &[1]),
    ] {
        let (_, notes) = Redirects::parse(text.as_bytes(), |_| false);
        let lines: Vec<usize> = notes.iter().filter_map(|note| note.line).collect();
        assert_eq!(lines, ignored, "{text}: {notes:?}");
    }
}

#[test]
fn rules_that_end_are_no_circles() {
    for (text, files) in [
        ("/* /index.html 200", [].as_slice()),
        ("/* / 200", &[]),
        ("/a /b 200\n/b /a 200", &[]),
        ("/* /", &["index.html"]),
        ("/docs /docs/intro\n/docs/* /docs", &["docs/intro.html"]),
        ("/a /a/ 302", &["a/index.html"]),
        ("/a x=1 /a", &[]),
        ("/a https://example.com/a", &[]),
        ("/old/* /new/:splat\n/new/x /old-x", &[]),
        ("/index.html / 301!", &["index.html"]),
    ] {
        let (_, notes) = redirects(text, files);
        assert_eq!(notes, [""; 0], "{text}");
    }
}

#[test]
fn a_redirect_to_the_same_address_does_not_match() {
    let (rules, _) = redirects("/a /a/ 302\n/b/:x /:x/y", &["a/index.html"]);
    assert_eq!(
        (answer(&rules, "/a?q"), answer(&rules, "/a/?q")),
        ("302 /a/?q".to_owned(), "none".to_owned())
    );
    assert_eq!(answer(&rules, "/b/b"), "301 /b/y");
}

#[test]
fn an_open_redirect_can_not_be_made_from_a_path() {
    let rules = ["/x/* /:splat 302", "/x/* /:splat/evil.example 302", "/x/* /:splat 200", "/x/* /y 404"];
    for line in rules {
        let (rules, notes) = redirects(line, &[]);
        assert_eq!(notes, [""; 0]);
        for tail in [
            "",
            "/",
            "//evil.example",
            "///evil.example",
            "/%2f%2fevil.example",
            "/%2F/evil.example",
            "/%5c%5cevil.example",
            "/\\evil.example",
            "/\\\\evil.example",
            "/%09/evil.example",
            "/\t/evil.example",
            "/%0d%0aSet-Cookie:a=b",
            "/%0a/evil.example",
            "/\r\n/evil.example",
            "/.//evil.example",
            "/..//evil.example",
            "/%2e%2e//evil.example",
            "/@evil.example",
            "/https://evil.example",
            "/%00/evil.example",
            "/%252f%252fevil.example",
            "/？evil",
            "/a?//evil.example",
            "/?\\evil",
        ] {
            assert_stays(&answer(&rules, &format!("/x{tail}")));
        }
    }
}

#[test]
fn a_query_can_not_inject_a_header_or_a_host() {
    for line in
        ["/x u=:u /:u 302", "/x u=:u /:u/evil.example 302", "/x u=:u /go?to=:u 302", "/x u=:u /:u 200"]
    {
        let (rules, notes) = redirects(line, &[]);
        assert_eq!(notes, [""; 0]);
        for value in [
            "",
            "//evil.example",
            "%2f%2fevil.example",
            "/evil.example",
            "%5cevil.example",
            "\\evil.example",
            "%0d%0aSet-Cookie:%20a=b",
            "\r\nSet-Cookie: a=b",
            "..",
            "%2e%2e%2f",
            "%09",
            "a&b=\\\r\n",
            "ä",
        ] {
            assert_stays(&answer(&rules, &format!("/x?u={value}")));
        }
    }
    let (rules, _) = redirects("/x https://example.com/a 302", &[]);
    assert_eq!(answer(&rules, "/x?a\r\nb: c"), "302 https://example.com/a?a%0D%0Ab:%20c");
}

/// Asserts that an answer is a redirect on the same host, and is safe as a header.
#[track_caller]
fn assert_stays(answer: &str) {
    assert!(answer.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '), "{answer}");
    if let Some(location) = answer.strip_prefix("302 ") {
        let base = url::Url::parse("https://site.example/x").unwrap();
        let url = base.join(location).unwrap();
        assert_eq!(url.host_str(), Some("site.example"), "{answer}");
        assert!(location.starts_with('/') && !location.starts_with("//"), "{answer}");
        assert!(!location.contains(['\\', ' ']), "{answer}");
    }
}

#[test]
fn a_target_of_many_splats_does_not_amplify_a_request() {
    let (rules, notes) = redirects(&format!("/x/* /{} 302", ":splat/".repeat(250)), &[]);
    assert_eq!(notes, [""; 0]);
    assert_eq!(answer(&rules, &format!("/x/{}", "a".repeat(1_000))), "none");
    assert_eq!(answer(&rules, "/x/a"), format!("302 /{}", "a/".repeat(250)));
}

#[test]
fn a_file_beyond_the_limits_is_cut_or_ignored() {
    let many: String = (0..2_100).map(|n| format!("/a{n} /b{n}\n")).collect();
    let (rules, notes) = redirects(&many, &[]);
    assert_eq!(rules.len(), RULES_MAX);
    assert_eq!(notes.len(), 1);
    assert!(notes[0].starts_with("_redirects line 2001: a site has at most 2000 rules"), "{notes:?}");

    let (rules, notes) = redirects(&"/a /b\n".repeat(11_000), &[]);
    assert!(rules.is_empty());
    assert!(notes[0].contains("64.5 KB, at most 64 KB"), "{notes:?}");

    let (rules, notes) = Redirects::parse(b"/a /\xff", |_| false);
    assert!(rules.is_empty() && notes[0].reason.contains("not UTF-8"));
    let (rules, _) = Redirects::parse("\u{feff}/a /b\r\n/c /d\r\n".as_bytes(), |_| false);
    assert_eq!((answer(&rules, "/a"), answer(&rules, "/c")), ("301 /b".to_owned(), "301 /d".to_owned()));
}

#[test]
fn rules_are_stored_as_json() {
    let text = "/a /b\n/store id=:id page=1 /blog/:id 302!\n/x/* https://example.com/:splat 308";
    let (rules, _) = redirects(text, &[]);
    let json = serde_json::to_value(&rules).unwrap();
    assert_eq!(json[0], serde_json::json!({"line": 1, "from": "/a", "to": "/b", "status": 301}));
    assert_eq!(serde_json::from_value::<Redirects>(json).unwrap(), rules);
    let forged = r#"[{"line": 1, "from": "/a", "to": "https://proxied.example/", "status": 200}]"#;
    assert!(serde_json::from_str::<Redirects>(forged).is_err());
}

#[test]
fn a_rule_reads_the_query_if_that_decides_whether_it_matches() {
    let request = RequestPath::parse("/x").unwrap();
    for (text, reads) in [
        ("/x /y", false),
        ("/x https://example.com/#a?b", true),
        ("/x a=b /y", true),
        ("/x a=:a /y 200", true),
        ("/x /y?a=b", true),
        ("/x /y?a=b 200", false),
        ("/z a=b /y", false),
        ("/* a=b /y", true),
    ] {
        assert_eq!(redirects(text, &[]).0.reads_query(&request), reads, "{text}");
    }
}

proptest! {
    #[test]
    fn a_location_without_a_query_gives_that_with_one(
        to in "(/a|/x|/:splat|https://e\\.x/:splat)(#f)?",
        sent in "/x(/[a-c/]{0,4})?",
        query in "(a|b|=|&|%20| |\"){0,8}",
    ) {
        let (rules, _) = redirects(&format!("/x/* {to} 302"), &[]);
        let request = RequestPath::parse(&sent).unwrap();
        prop_assert!(!rules.reads_query(&request));
        let found = |query| match rules.after_files(&request, &RequestQuery::new(query)) {
            Some(RuleMatch::Redirect { location, .. }) => Some(location),
            _ => None,
        };
        prop_assert_eq!(found("").map(|location| with_forwarded_query(location, &query)), found(&query));
    }

    #[test]
    fn no_line_and_no_request_leaves_the_host(
        to in "/(:splat|:a|:q|/|x|%2f|\\.|\\?|#|@|:){0,6}",
        tail in "(/|a|\\.|%5c|%09|%0d|:|@|\\\\|ä){0,12}",
        query in "(q=|&|%0a|/|\\\\|a){0,6}",
    ) {
        let (rules, _) = redirects(&format!("/:a/* q=:q {to} 302\n/:a/* {to} 302"), &[]);
        assert_stays(&answer(&rules, &format!("/x/{tail}?{query}")));
    }

    #[test]
    fn no_text_makes_the_parser_fail(text in "((/|\\*|:a|:splat|x|=|!|301|200| |#|https://e\\.x|\n|%|ä){0,12}\n){0,6}") {
        let (rules, notes) = redirects(&text, &[]);
        prop_assert!(rules.len() + notes.len() <= text.lines().count());
        let json = serde_json::to_string(&rules).unwrap();
        prop_assert_eq!(serde_json::from_str::<Redirects>(&json).unwrap(), rules);
    }
}
