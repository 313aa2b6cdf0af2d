//! How long a browser stays signed in, and what ends it.

use chrono::TimeDelta;
use http::StatusCode;

use crate::stand::Stand;

#[tokio::test]
async fn a_session_ends_a_week_after_its_last_use() {
    let stand = Stand::start().await;
    let mut browser = stand.signed_in("ada").await;
    for _ in 0..3 {
        stand.later(TimeDelta::days(6));
        assert!(browser.is_signed_in().await);
    }
    stand.later(TimeDelta::days(7));
    assert!(!browser.is_signed_in().await);
}

#[tokio::test]
async fn a_session_in_daily_use_ends_after_thirty_days() {
    let stand = Stand::start().await;
    let mut browser = stand.signed_in("ada").await;
    for day in 1..30 {
        stand.later(TimeDelta::days(1));
        assert!(browser.is_signed_in().await, "on day {day}");
    }
    stand.later(TimeDelta::days(1));
    assert!(!browser.is_signed_in().await);
    stand.signed_in("ada").await;
    assert_eq!(stand.texts("select s::text from sessions s").await.len(), 1, "the old one is cleared away");
}

#[tokio::test]
async fn use_is_written_down_at_most_once_a_minute() {
    let stand = Stand::start().await;
    let mut browser = stand.signed_in("ada").await;
    let seen = "select last_seen_at::text from sessions";
    let before = stand.texts(seen).await;
    stand.later(TimeDelta::seconds(59));
    browser.get("/account").await;
    assert_eq!(stand.texts(seen).await, before);
    stand.later(TimeDelta::seconds(1));
    browser.get("/account").await;
    assert_ne!(stand.texts(seen).await, before);
}

#[tokio::test]
async fn a_token_that_a_browser_had_before_signing_in_is_worth_nothing_after_it() {
    let stand = Stand::start().await;
    let mut attacker = stand.signed_in("eve").await;
    let planted = attacker.cookies["session"].clone();
    let mut victim = stand.browser();
    victim.cookies.insert("session".to_owned(), planted.clone());
    victim.sign_in("a", &stand.a, "ada", "/account").await;
    assert_ne!(victim.cookies["session"], planted);
    assert!(!attacker.is_signed_in().await, "and whose it was is signed out");

    let invented = "x".repeat(43);
    let mut victim = stand.browser();
    victim.cookies.insert("session".to_owned(), invented.clone());
    assert!(!victim.is_signed_in().await);
    victim.sign_in("a", &stand.a, "ada", "/account").await;
    assert_ne!(victim.cookies["session"], invented);
}

#[tokio::test]
async fn signing_out_ends_the_session_for_whoever_has_its_token() {
    let stand = Stand::start().await;
    let mut browser = stand.signed_in("ada").await;
    let mut copy = browser.clone();
    let out = browser.post("/logout", &[]).await;
    assert_eq!((out.status, out.header("location")), (StatusCode::SEE_OTHER, "/login"));
    assert!(!browser.cookies.contains_key("session"));
    assert!(!copy.is_signed_in().await);
    assert_eq!(browser.post("/logout", &[]).await.status, StatusCode::SEE_OTHER, "twice does no harm");
}

#[tokio::test]
async fn a_session_that_has_ended_does_nothing_in_the_api_from_then_on() {
    let stand = Stand::that_remembers().await;
    let mut browser = stand.signed_in("ada").await;
    browser.post("/account/new", &[]).await;
    let mut copy = browser.clone();
    assert_eq!(copy.account().await.0, StatusCode::OK);
    browser.sign_in("a", &stand.a, "ada", "/account").await;
    assert_eq!(copy.account().await.0, StatusCode::UNAUTHORIZED, "its browser has begun another");

    let mut copy = browser.clone();
    assert_eq!(copy.account().await.0, StatusCode::OK);
    browser.post("/logout", &[]).await;
    assert_eq!(copy.account().await.0, StatusCode::UNAUTHORIZED, "it was signed out");
}

#[tokio::test]
async fn the_database_alone_opens_no_session() {
    let stand = Stand::start().await;
    let browser = stand.signed_in("ada").await;
    let token = &browser.cookies["session"];
    let row = &stand.texts("select s::text from sessions s").await[0];
    let spelled: String = token.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(!row.contains(token) && !row.contains(&spelled), "{row}");
}

#[tokio::test]
async fn what_another_sites_page_posts_changes_nothing() {
    let stand = Stand::with(&["signin.local=true"]).await;
    let trial = stand.trial().await;
    let mut browser = stand.signed_in("ada").await;
    let everything =
        "select t::text from (select a.id, a.claimed_at, s.account_id from accounts a, sessions s) t";
    let before = stand.texts(everything).await;
    let foreign = [
        None,
        Some("null"),
        Some("https://evil.test"),
        Some("http://site.localhost:8080"),
        Some("https://localhost:8080"),
    ];
    for origin in foreign {
        for path in ["/logout", "/account/new", "/account/switch", "/login/local", &trial.path] {
            let form = [("email", "eve@example.com"), ("account", "00000000-0000-0000-0000-000000000000")];
            let answer = browser.post_from(origin, path, &form).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{origin:?} {path}: {}", answer.text);
            assert_eq!(answer.header("set-cookie"), "");
        }
    }
    assert_eq!(stand.texts(everything).await, before);
    assert!(browser.is_signed_in().await);
}
