//! Tests of the tracker's request body.

use serde_json::{Value, json};

use super::*;

fn body() -> Value {
    json!({"siteToken": "site_a", "name": "page_view", "url": "https://Shop.Example:8443/a%20b?utm_source=news&token=s3cret#frag"})
}

fn with(key: &str, value: Value) -> Result<Hit, Dropped> {
    let mut body = body();
    body[key] = value;
    parse(body.to_string().as_bytes())
}

#[test]
fn only_host_path_and_campaign_of_the_url_are_retained() {
    let hit = with("title", json!(" Shop ")).unwrap();
    assert_eq!(
        (hit.host.as_str(), hit.path.as_str(), hit.title.as_str()),
        ("shop.example", "/a%20b", "Shop")
    );
    assert_eq!(hit.campaign, Campaign { source: "news".into(), ..Campaign::default() });
    assert!(!format!("{hit:?}").contains("s3cret"));
}

#[test]
fn a_fragment_belongs_to_the_path_only_if_it_is_a_route() {
    let path = |url: &str, hash_routing: bool| {
        let mut body = body();
        body["url"] = json!(url);
        body["hashRouting"] = json!(hash_routing);
        parse(body.to_string().as_bytes()).unwrap().path
    };
    assert_eq!(path("https://a.example/app?x=1#/users/1?token=s3cret", true), "/app#/users/1");
    assert_eq!(path("https://a.example/app#/users/1", false), "/app");
    for nowhere in ["https://a.example/app", "https://a.example/app#", "https://a.example/app#?x"] {
        assert_eq!(path(nowhere, true), "/app", "{nowhere}");
    }
}

#[test]
fn short_field_names_are_aliases() {
    let long = json!({
        "siteToken": "site_a", "name": "a", "url": "https://a.example/b#c", "referrer": "https://d.example/",
        "title": "E", "screenWidth": 1_920, "props": {"f": "g"}, "engagementMs": 5, "scrollDepth": 6,
        "hashRouting": true, "group": 8, "sequence": 7,
    });
    let short = ["t", "n", "u", "r", "i", "w", "p", "e", "s", "h", "g", "q"];
    let names = ["siteToken", "name", "url", "referrer", "title", "screenWidth", "props", "engagementMs"]
        .into_iter()
        .chain(["scrollDepth", "hashRouting", "group", "sequence"]);
    let renamed: serde_json::Map<_, _> =
        names.zip(short).map(|(long_name, name)| (name.to_owned(), long[long_name].clone())).collect();
    assert_eq!(renamed.len(), 12);
    let hit = parse(long.to_string().as_bytes()).unwrap();
    assert_eq!(parse(Value::Object(renamed).to_string().as_bytes()), Ok(hit.clone()));
    assert_eq!((hit.path.as_str(), hit.engagement_ms, hit.scroll_depth), ("/b#c", 5, Some(6)));
    assert_eq!((hit.group, hit.sequence), (8, 7));
}

#[test]
fn campaign_parameters_are_read_before_the_query_is_discarded() {
    let url = "https://a.example/?utm_source=x&utm_medium=e%2Dmail&utm_campaign=spring+sale&utm_term=no";
    let hit = with("url", json!(url)).unwrap();
    let expected =
        Campaign { source: "x".into(), medium: "e-mail".into(), name: "spring sale".into(), click: "" };
    assert_eq!(hit.campaign, expected);
}

#[test]
fn only_the_kind_of_a_paid_click_is_retained_and_older_source_parameters_count() {
    let expected = |query: &str| with("url", json!(format!("https://a.example/?{query}"))).unwrap().campaign;
    assert_eq!(expected("gclid=s3cret"), Campaign { click: "gclid", ..Campaign::default() });
    assert_eq!(expected("ref=hn").source, "hn");
    assert_eq!(expected("source=b&utm_source=a").source, "a");
}

#[test]
fn a_referrer_is_an_external_host_or_empty() {
    let host = |referrer: &str| with("referrer", json!(referrer)).unwrap().referrer_host;
    assert_eq!(host("https://www.News.example/item?id=1"), "news.example");
    assert_eq!(host("android-app://com.Example.App/"), "com.example.app");
    for nothing in ["https://www.shop.example/other", "not a url", "", "data:text/html,x"] {
        assert_eq!(host(nothing), "", "{nothing}");
    }
}

#[test]
fn a_host_longer_than_any_dns_name_is_truncated() {
    let long = format!("https://{}/", vec!["a".repeat(60); 6].join("."));
    assert_eq!(with("referrer", json!(long)).unwrap().referrer_host.len(), 253);
    assert_eq!(with("url", json!(long)).unwrap().host.len(), 253);
}

#[test]
fn pages_that_are_not_http_are_dropped() {
    for url in [json!("file:///etc/passwd"), json!("about:blank"), json!("/relative"), json!(""), Value::Null]
    {
        assert_eq!(with("url", url.clone()), Err(Dropped::Url), "{url}");
    }
}

#[test]
fn bodies_that_are_not_the_expected_object_are_unreadable() {
    for body in ["", "[]", "null", "{", "\u{1}", r#"{"url": 3}"#] {
        assert_eq!(parse(body.as_bytes()), Err(Dropped::Unreadable), "{body}");
    }
    assert_eq!(parse(b"{\"url\": \"\xff\"}"), Err(Dropped::Unreadable));
}

#[test]
fn a_site_token_and_a_name_are_required() {
    for token in [Value::Null, json!(""), json!("x".repeat(65))] {
        assert_eq!(with("siteToken", token), Err(Dropped::UnknownSite));
    }
    for name in [Value::Null, json!("  "), json!("x".repeat(65)), json!("a\u{0}b")] {
        assert_eq!(with("name", name), Err(Dropped::Name));
    }
    assert_eq!(with("name", json!(" sign up ")).unwrap().name, "sign up");
}

#[test]
fn props_are_scalars_and_at_most_twenty() {
    let hit = with("props", json!({"plan": "pro", "users": 3, "trial": false, "none": null})).unwrap();
    let expected = [("plan", "pro"), ("users", "3"), ("trial", "false")];
    assert_eq!(hit.props, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));

    let many = |count: usize| Value::Object((0..count).map(|i| (format!("k{i}"), json!(i))).collect());
    assert_eq!(with("props", many(20)).unwrap().props.len(), 20);
    for wrong in [many(21), json!({"a": [1]}), json!({"a": {}}), json!({"": 1})] {
        assert_eq!(with("props", wrong), Err(Dropped::Props));
    }
}

#[test]
fn measurements_are_bounded_and_fractions_rounded() {
    let depth = |percent: f64| with("scrollDepth", json!(percent)).unwrap().scroll_depth;
    assert_eq!((depth(-3.0), depth(49.6), depth(250.0)), (Some(0), Some(50), Some(100)));
    for (expected, retained) in
        [(json!(1e300), 1_800_000), (json!(1_800_001), 1_800_000), (json!(1_799_999), 1_799_999)]
    {
        assert_eq!(with("engagementMs", expected).unwrap().engagement_ms, retained);
    }
    assert_eq!(with("title", json!("")).unwrap().scroll_depth, None);
    let sequence = |sent: Value| with("sequence", sent).unwrap().sequence;
    assert_eq!((sequence(json!(-1)), sequence(json!(null)), sequence(json!(1e9))), (0, 0, u16::MAX));
}

#[test]
fn a_screen_is_a_class_not_a_width() {
    let class = |width: f64| with("screenWidth", json!(width)).unwrap().screen.map(Screen::as_str);
    assert_eq!(class(390.0), Some("mobile"));
    assert_eq!(class(768.0), Some("tablet"));
    assert_eq!(class(1_097.14), Some("laptop"));
    assert_eq!(class(2_560.0), Some("desktop"));
    assert_eq!((class(0.0), class(-1.0), class(1e9)), (None, None, None));
}

#[test]
fn long_texts_are_truncated_between_characters() {
    let hit = with("title", json!("ü".repeat(1_000))).unwrap();
    assert_eq!(hit.title, "ü".repeat(300));
    let long = format!("https://a.example/{}", "p".repeat(5_000));
    assert_eq!(with("url", json!(long)).unwrap().path.len(), 1_024);
}

#[test]
fn fields_of_newer_trackers_are_ignored() {
    assert!(with("newField", json!({"x": 1})).is_ok());
}

#[test]
fn every_drop_reason_has_its_own_name() {
    let words: std::collections::HashSet<_> = Dropped::ALL.map(Dropped::as_str).into();
    assert_eq!(words.len(), Dropped::ALL.len());
}
