//! Tests of `_headers`: the syntax, the allow list, merging, and hostile values.

use proptest::prelude::*;

use super::*;

fn headers(text: &str) -> (HeaderRules, Vec<String>) {
    let (rules, notes) = HeaderRules::parse(text.as_bytes());
    (rules, notes.iter().map(ToString::to_string).collect())
}

fn answer(rules: &HeaderRules, sent: &str) -> String {
    let request = RequestPath::parse(sent).unwrap();
    let headers = rules.headers_of(&request, None);
    headers.iter().map(|header| format!("{}: {}", header.name, header.value)).collect::<Vec<_>>().join(" | ")
}

#[test]
fn headers_apply_below_their_paths() {
    let text = "# all\n/*\n  X-Frame-Options: DENY\n\n/assets/*.js\n  Cache-Control: public\n  cache-control: immutable\n\
        /:lang/x\nContent-Language: de\n";
    let (rules, notes) = headers(text);
    assert_eq!(notes, [""; 0]);
    assert_eq!(answer(&rules, "/"), "x-frame-options: DENY");
    assert_eq!(answer(&rules, "/assets/a/b.js"), "x-frame-options: DENY | cache-control: public, immutable");
    assert_eq!(answer(&rules, "/assets/a.css"), "x-frame-options: DENY");
    assert_eq!(answer(&rules, "/de/x/"), "x-frame-options: DENY | content-language: de");
}

#[test]
fn values_are_joined_or_replaced_by_their_kind() {
    let both = |name: &str| format!("/*\n  {name}: one\n/a\n  {name}: two\n  {name}: three");
    for (name, expected) in [
        ("Link", "link: one, two, three"),
        ("Content-Security-Policy", "content-security-policy: one, two, three"),
        ("Access-Control-Expose-Headers", "access-control-expose-headers: one, two, three"),
        ("Cache-Control", "cache-control: two, three"),
        ("X-Frame-Options", "x-frame-options: three"),
        ("Access-Control-Allow-Origin", "access-control-allow-origin: three"),
        ("Cross-Origin-Opener-Policy", "cross-origin-opener-policy: three"),
    ] {
        let (rules, notes) = headers(&both(name));
        assert_eq!(notes, [""; 0]);
        assert_eq!(answer(&rules, "/a"), expected);
    }
    let (rules, _) = headers("/*\n  Link: a\n  Link: a\n/a\n  Link: a");
    assert_eq!(answer(&rules, "/a"), "link: a");
}

#[test]
fn an_exclamation_mark_removes_values_set_above() {
    let (rules, notes) = headers("/*\n  Link: a\n  X-Frame-Options: DENY\n/a/*\n  ! Link\n/a/b\n  Link: c");
    assert_eq!(notes, [""; 0]);
    assert_eq!(answer(&rules, "/x"), "link: a | x-frame-options: DENY");
    assert_eq!(answer(&rules, "/a/x"), "x-frame-options: DENY");
    assert_eq!(answer(&rules, "/a/b"), "x-frame-options: DENY | link: c");
}

#[test]
fn headers_outside_the_allow_list_are_ignored_and_listed() {
    for name in [
        "Set-Cookie",
        "Alt-Svc",
        "Strict-Transport-Security",
        "Clear-Site-Data",
        "Content-Type",
        "Content-Encoding",
        "Location",
        "Refresh",
        "NEL",
        "Basic-Auth",
        "Report-To",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "ETag",
        "Vary",
        "Server",
        "X-Powered-By",
        "Access-Control-",
        "Cross-Origin-\u{fc}",
        "Link x",
        "",
    ] {
        for line in [format!("{name}: a=b"), format!("! {name}")] {
            let (rules, notes) = headers(&format!("/*\n  {line}\n  Link: a"));
            assert_eq!(notes.len(), 1, "{line}: {notes:?}");
            assert!(notes[0].starts_with("_headers line 2: a site may not set the header"), "{notes:?}");
            assert_eq!(answer(&rules, "/x"), "link: a");
        }
    }
}

#[test]
fn the_allow_list_is_the_documented_one() {
    for name in [
        "Access-Control-Allow-Origin",
        "Access-Control-Allow-Methods",
        "Cache-Control",
        "Content-Disposition",
        "Content-Language",
        "Content-Security-Policy",
        "Content-Security-Policy-Report-Only",
        "Cross-Origin-Embedder-Policy",
        "Cross-Origin-Opener-Policy",
        "Cross-Origin-Resource-Policy",
        "Link",
        "Origin-Agent-Cluster",
        "Permissions-Policy",
        "Referrer-Policy",
        "Service-Worker-Allowed",
        "Timing-Allow-Origin",
        "X-Frame-Options",
        "X-Robots-Tag",
    ] {
        let (rules, notes) = headers(&format!("/*\n  {name}: a"));
        assert_eq!(notes, [""; 0], "{name}");
        assert_eq!(answer(&rules, "/"), format!("{}: a", name.to_lowercase()));
    }
}

#[test]
fn a_value_can_not_inject_a_header() {
    for value in ["a\rSet-Cookie: b", "a\0b", "a\tb", "a\u{7f}", "a\u{85}b", "ä", "\r", ""] {
        let (rules, notes) = headers(&format!("/*\n  Link: {value}\n  X-Frame-Options: DENY"));
        assert_eq!(notes.len(), 1, "{value:?}: {notes:?}");
        assert_eq!(answer(&rules, "/"), "x-frame-options: DENY", "{value:?}");
    }
}

#[test]
fn ignored_lines_say_why() {
    for (text, line, reason) in [
        ("Link: a", 1, "below a path"),
        ("/*\n  Link", 2, "`Name: value`"),
        ("/*/*\n  Link: a", 1, "only one `*` is supported; the headers below it are ignored"),
        ("https://example.com/*\n  Link: a", 1, "paths with a domain"),
        ("/_wr/*\n  Link: a", 1, "reserved"),
        (&format!("/*\n Link: {}", "a".repeat(4_097)), 2, "more than 4096 bytes"),
    ] {
        let (rules, notes) = headers(text);
        assert!(rules.is_empty(), "{text}");
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(
            notes[0].starts_with(&format!("_headers line {line}: ")) && notes[0].contains(reason),
            "{notes:?}"
        );
    }
}

#[test]
fn a_response_of_the_platform_has_no_headers_of_the_site() {
    let (rules, _) = headers("/*\n  Cache-Control: no-store");
    assert_eq!(answer(&rules, "/_wr/script.js"), "");
    assert_eq!(answer(&rules, "/.well-known/acme-challenge/t"), "");
}

#[test]
fn robots_headers_never_weaken_the_platforms_own() {
    let (rules, _) = headers("/*\n  X-Robots-Tag: all, nofollow");
    let request = RequestPath::parse("/").unwrap();
    let value = |own: Option<&str>| rules.headers_of(&request, own)[0].value.clone();
    assert_eq!(value(Some("noindex")), "noindex, nofollow");
    assert_eq!(value(None), "all, nofollow");
}

#[test]
fn a_response_has_headers_of_bounded_size() {
    let value = |n: usize| format!("{n:04}{}", "v".repeat(1_000));
    let text: String = (0..60).map(|n| format!("/*\n Link: {}\n", value(n))).collect();
    let (rules, notes) = headers(&text);
    assert_eq!(notes, [""; 0]);
    let headers = rules.headers_of(&RequestPath::parse("/").unwrap(), None);
    assert_eq!(headers.len(), 1);
    assert!((15_000..=RESPONSE_BYTES_MAX).contains(&headers[0].value.len()), "{}", headers[0].value.len());

    let (rules, notes) = self::headers(&"/*\n Link: a\n".repeat(1_001));
    assert_eq!(rules.paths.len(), PATHS_MAX);
    assert!(notes[0].contains("at most 1000 paths"), "{notes:?}");
    let (rules, notes) = self::headers(&"x".repeat(64 * 1024 + 1));
    assert!(rules.is_empty() && notes[0].contains("at most 64 KB"), "{notes:?}");
}

#[test]
fn rules_are_stored_as_json() {
    let (rules, _) = headers("/a/*\n  Link: b\n  ! X-Frame-Options");
    let json = serde_json::to_value(&rules).unwrap();
    let expected = serde_json::json!([
        {"path": "/a/*", "headers": [{"name": "link", "value": "b"}, {"name": "x-frame-options"}]}
    ]);
    assert_eq!(json, expected);
    assert_eq!(serde_json::from_value::<HeaderRules>(json).unwrap(), rules);
}

proptest! {
    #[test]
    fn no_text_makes_an_unsafe_header(
        text in "((/\\*|/a| Link|Set-Cookie|Cache-Control|!|:|\r|\t|é|x|, ){0,6}\n){0,8}",
        sent in "/[a-c/]{0,6}",
    ) {
        let (rules, _) = headers(&text);
        for header in rules.headers_of(&RequestPath::parse(&sent).unwrap(), Some("noindex")) {
            prop_assert!(is_allowed(&header.name) && header.name != "set-cookie");
            prop_assert!(header.value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '));
        }
        let json = serde_json::to_string(&rules).unwrap();
        prop_assert_eq!(serde_json::from_str::<HeaderRules>(&json).unwrap(), rules);
    }
}
