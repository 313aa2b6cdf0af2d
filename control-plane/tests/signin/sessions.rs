//! The lifetime of sessions.

use chrono::TimeDelta;
use http::StatusCode;

use crate::fixture::Fixture;

#[tokio::test]
async fn a_session_ends_a_week_after_its_last_use() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.signed_in("ada").await;
    for _ in 0..3 {
        fixture.advance_clock(TimeDelta::days(6));
        assert!(browser.is_signed_in().await);
    }
    fixture.advance_clock(TimeDelta::days(7));
    assert!(!browser.is_signed_in().await);
}

#[tokio::test]
async fn a_session_in_daily_use_ends_after_thirty_days() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.signed_in("ada").await;
    for day in 1..30 {
        fixture.advance_clock(TimeDelta::days(1));
        assert!(browser.is_signed_in().await, "on day {day}");
    }
    fixture.advance_clock(TimeDelta::days(1));
    assert!(!browser.is_signed_in().await);
    fixture.signed_in("ada").await;
    assert_eq!(fixture.texts("select s::text from sessions s").await.len(), 1, "the old session is deleted");
}

#[tokio::test]
async fn use_is_recorded_at_most_once_a_minute() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.signed_in("ada").await;
    let seen = "select last_seen_at::text from sessions";
    let before = fixture.texts(seen).await;
    fixture.advance_clock(TimeDelta::seconds(59));
    browser.get("/account").await;
    assert_eq!(fixture.texts(seen).await, before);
    fixture.advance_clock(TimeDelta::seconds(1));
    browser.get("/account").await;
    assert_ne!(fixture.texts(seen).await, before);
}

#[tokio::test]
async fn a_sign_in_invalidates_the_previous_token() {
    let fixture = Fixture::start().await;
    let mut attacker = fixture.signed_in("eve").await;
    let fixed_token = attacker.cookies["session"].clone();
    let mut victim = fixture.browser();
    victim.cookies.insert("session".to_owned(), fixed_token.clone());
    victim.sign_in("a", &fixture.a, "ada", "/account").await;
    assert_ne!(victim.cookies["session"], fixed_token);
    assert!(!attacker.is_signed_in().await, "and the previous session has ended");

    let unknown_token = "x".repeat(43);
    let mut victim = fixture.browser();
    victim.cookies.insert("session".to_owned(), unknown_token.clone());
    assert!(!victim.is_signed_in().await);
    victim.sign_in("a", &fixture.a, "ada", "/account").await;
    assert_ne!(victim.cookies["session"], unknown_token);
}

#[tokio::test]
async fn signing_out_invalidates_the_token() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.signed_in("ada").await;
    let mut copy = browser.clone();
    let out = browser.post("/logout", &[]).await;
    assert_eq!((out.status, out.header("location")), (StatusCode::SEE_OTHER, "/login"));
    assert!(!browser.cookies.contains_key("session"));
    assert!(!copy.is_signed_in().await);
    assert_eq!(browser.post("/logout", &[]).await.status, StatusCode::SEE_OTHER, "twice does no harm");
}

#[tokio::test]
async fn an_ended_session_is_rejected_by_the_api() {
    let fixture = Fixture::with_long_cache().await;
    let mut browser = fixture.signed_in("ada").await;
    browser.post("/account/new", &[]).await;
    let mut copy = browser.clone();
    assert_eq!(copy.account().await.0, StatusCode::OK);
    browser.sign_in("a", &fixture.a, "ada", "/account").await;
    assert_eq!(copy.account().await.0, StatusCode::UNAUTHORIZED, "its browser has a newer session");

    let mut copy = browser.clone();
    assert_eq!(copy.account().await.0, StatusCode::OK);
    browser.post("/logout", &[]).await;
    assert_eq!(copy.account().await.0, StatusCode::UNAUTHORIZED, "it has been signed out");
}

#[tokio::test]
async fn stored_hashes_do_not_authenticate() {
    let fixture = Fixture::start().await;
    let browser = fixture.signed_in("ada").await;
    let token = &browser.cookies["session"];
    let row = &fixture.texts("select s::text from sessions s").await[0];
    let hex: String = token.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(!row.contains(token) && !row.contains(&hex), "{row}");
}

#[tokio::test]
async fn posts_from_other_origins_change_nothing() {
    let fixture = Fixture::with(&["signin.local=true"]).await;
    let trial = fixture.trial().await;
    let mut browser = fixture.signed_in("ada").await;
    let everything =
        "select t::text from (select a.id, a.claimed_at, s.account_id from accounts a, sessions s) t";
    let before = fixture.texts(everything).await;
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
            let response = browser.post_from(origin, path, &form).await;
            assert_eq!(response.status, StatusCode::FORBIDDEN, "{origin:?} {path}: {}", response.text);
            assert_eq!(response.header("set-cookie"), "");
        }
    }
    assert_eq!(fixture.texts(everything).await, before);
    assert!(browser.is_signed_in().await);
}
