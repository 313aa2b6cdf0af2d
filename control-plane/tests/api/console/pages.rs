//! What all pages share: sign-in, headers, errors and outages.

use http::{Method, StatusCode};

use super::visitor::{BASE, Visitor, send};
use crate::harness::Api;

/// Every page without parameters.
const PAGES: [&str; 9] = [
    "/console",
    "/console/sites",
    "/console/forms",
    "/console/analytics",
    "/console/webhooks",
    "/console/automations",
    "/console/keys",
    "/console/account",
    "/console/account/activity",
];

#[tokio::test]
async fn a_page_without_a_session_leads_to_sign_in_and_back() {
    let api = Api::start(&[]).await;
    for path in PAGES.into_iter().chain(["/console/forms/0-1?status=spam"]) {
        for cookie in ["", "session=abc"] {
            let page = send(&api, Method::GET, path, &[("cookie", cookie)], "").await;
            let location = page.header("location");
            assert_eq!(page.status, StatusCode::SEE_OTHER, "{path}: {}", page.html);
            let query = location.strip_prefix("/login?returnTo=").unwrap();
            assert_eq!(percent_decoded(query), path);
        }
    }
}

fn percent_decoded(text: &str) -> String {
    url::form_urlencoded::parse(format!("x={text}").as_bytes()).next().unwrap().1.into_owned()
}

#[tokio::test]
async fn every_page_has_the_exact_policy_and_the_empty_state() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    for path in PAGES {
        let page = ada.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.html);
        assert_eq!(page.html.matches("<h1").count(), 1, "{path}");
        let (script, style) =
            (address(&page.html, "src=\"", ".js"), address(&page.html, "stylesheet\" href=\"", ".css"));
        let policy = format!(
            "default-src 'none'; script-src {BASE}{script}; style-src {BASE}{style}; img-src 'self'; connect-src 'self'; \
             frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'; trusted-types console"
        );
        assert_eq!(page.header("content-security-policy"), policy);
        for (name, value) in [
            ("x-frame-options", "DENY"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(page.header(name), value, "{path}");
        }
        for file in [script, style] {
            let file = ada.get(&file).await;
            assert_eq!(file.header("cache-control"), "public, max-age=31536000, immutable");
            assert_eq!(file.header("x-content-type-options"), "nosniff");
        }
    }
    ada.get("/console").await.contains("Ways to begin").contains("/api/workflows/contact");
    ada.get("/console/forms").await.contains("No form yet");
    ada.get("/console/analytics").await.contains("No site is counted yet");
    ada.get("/console/webhooks").await.contains("No webhook yet");
}

/// Returns the address that begins after `before` and ends with `end`.
fn address(html: &str, before: &str, end: &str) -> String {
    let rest = html.split_once(before).unwrap().1;
    rest[..rest.find(end).unwrap() + end.len()].to_owned()
}

#[tokio::test]
async fn an_unknown_page_and_a_form_of_another_account_are_not_found() {
    let api = Api::start(&[]).await;
    let (ada, grace) = (Visitor::sign_in(&api).await, Visitor::sign_in(&api).await);
    let form = super::forms::contact_form(&api, &grace.key).await;
    for path in [
        "/console/nothing",
        "/console/forms/nothing",
        "/console/console-0.css",
        &format!("/console/forms/{form}"),
    ] {
        let page = ada.get(path).await;
        assert!(
            [StatusCode::NOT_FOUND, StatusCode::BAD_REQUEST].contains(&page.status),
            "{path}: {}",
            page.status
        );
        assert!(page.header("content-type").starts_with("text/html"), "{path}");
        assert_eq!(page.html.matches("<h1").count(), 1, "{path}");
    }
}

#[tokio::test]
async fn csrf_a_form_of_another_site_changes_nothing() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let page = ada.get("/console/keys").await;
    let form = [("account", page.hidden("account")), ("label", "stolen".to_owned())];
    let form: Vec<_> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
    for origin in ["https://evil.test", "null", ""] {
        let refused = ada.post_from(origin, "/console/keys", &form).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{origin}");
        refused.contains("Nothing was changed");
    }
    assert!(!ada.get("/console/keys").await.html.contains("stolen"));
}

#[tokio::test]
async fn a_page_made_for_another_account_writes_nothing() {
    let api = Api::start(&[]).await;
    let (ada, grace) = (Visitor::sign_in(&api).await, Visitor::sign_in(&api).await);
    let account = grace.account_id.to_string();
    for form in [&[("account", account.as_str()), ("label", "x")][..], &[("label", "x")]] {
        let page = ada.post("/console/keys", form).await;
        assert_eq!(page.status, StatusCode::CONFLICT);
        page.contains("Another account is current");
    }
}

#[tokio::test]
async fn the_first_page_of_the_host_says_how_to_begin_or_leads_to_the_console() {
    let api = Api::start(&[]).await;
    let page = send(&api, Method::GET, "/", &[("accept", "text/html")], "").await;
    assert_eq!(page.status, StatusCode::OK);
    page.contains("/api/trial").contains("href=\"/login?returnTo=%2Fconsole\"");
    let page = Visitor::sign_in(&api).await.get("/").await;
    assert_eq!((page.status, page.header("location")), (StatusCode::SEE_OTHER, "/console"));
}

#[tokio::test]
async fn the_theme_is_remembered() {
    let api = Api::start(&[]).await;
    let mut ada = Visitor::sign_in(&api).await;
    let set = ada.post("/console/theme", &[("theme", "dark"), ("here", "/console/forms")]).await;
    assert_eq!((set.status, set.header("location")), (StatusCode::SEE_OTHER, "/console/forms"));
    let cookie = set.header("set-cookie").split(';').next().unwrap();
    ada.cookie = format!("{}; {cookie}", ada.cookie);
    ada.get("/console").await.contains("data-theme=\"dark\"");
}
