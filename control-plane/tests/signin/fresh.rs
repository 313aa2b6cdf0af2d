//! What a session may do only soon after its sign-in, and the list of a person's sessions.

use chrono::TimeDelta;
use http::StatusCode;
use serde_json::{Value, json};

use crate::browser::{Browser, BrowserResponse};
use crate::fixture::Fixture;
use crate::provider::Overrides;

const AGAIN: &str = "/api/auth/oauth/a?again=true&returnTo=%2Faccount";

fn json_of(response: &BrowserResponse) -> Value {
    serde_json::from_str(&response.text).unwrap()
}

fn is_refused(response: &BrowserResponse) -> bool {
    response.status == StatusCode::FORBIDDEN && json_of(response)["code"] == "sign_in_again"
}

/// Signs in again from the link of the problem, as the provider approves it.
async fn sign_in_again(fixture: &Fixture, browser: &mut Browser, subject: &str) -> BrowserResponse {
    let begun = browser.get(AGAIN).await;
    assert_eq!(begun.status, StatusCode::SEE_OTHER, "{}", begun.text);
    let url: url::Url = begun.header("location").parse().unwrap();
    let asked: Vec<_> = url.query_pairs().into_owned().collect();
    assert!(asked.contains(&("prompt".to_owned(), "login".to_owned())), "{url}");
    assert!(asked.contains(&("max_age".to_owned(), "900".to_owned())), "{url}");
    let params = fixture.a.approve(&url, subject);
    browser.call_callback("a", &params).await
}

#[tokio::test]
async fn a_stolen_session_cookie_can_not_create_a_key_that_writes() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.signed_in("ada").await;
    fixture.advance_clock(TimeDelta::minutes(15));
    let created = browser.post_json("/api/keys", &json!({"label": "k"})).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.text);
    fixture.advance_clock(TimeDelta::seconds(1));

    let refused = browser.post_json("/api/keys", &json!({"label": "k"})).await;
    assert!(is_refused(&refused), "{}", refused.text);
    assert_eq!(json_of(&refused)["signInUrl"], "/login?again=true");
    let narrow = json!({"label": "k", "scopes": ["pages:read", "pages:create"]});
    assert!(is_refused(&browser.post_json("/api/keys", &narrow).await));
    let reads = json!({"label": "k", "scopes": ["pages:read", "forms:read"]});
    assert_eq!(browser.post_json("/api/keys", &reads).await.status, StatusCode::CREATED);
    assert_eq!(browser.account().await.0, StatusCode::OK, "the session itself goes on");
}

#[tokio::test]
async fn a_stolen_session_cookie_can_not_reveal_secrets_delete_data_or_change_the_plan() {
    let fixture = Fixture::with(&["upgrade.mode=instant"]).await;
    let mut browser = fixture.signed_in("ada").await;
    let created = async |browser: &mut Browser, path: &str, body: Value, id: &str| {
        let response = browser.post_json(path, &body).await;
        assert_eq!(response.status, StatusCode::CREATED, "{}", response.text);
        json_of(&response)[id].as_str().unwrap().to_owned()
    };
    let key = created(&mut browser, "/api/keys", json!({"label": "k"}), "id").await;
    let form = json!({"name": "F", "fields": [{"name": "a", "label": "A", "type": "text"}]});
    let form = created(&mut browser, "/api/forms", form, "formId").await;
    let hook = json!({"url": "https://example.com/hook"});
    let hook = created(&mut browser, "/api/webhooks", hook, "id").await;
    fixture.advance_clock(TimeDelta::minutes(16));

    for path in [format!("/api/keys/{key}/rotate"), format!("/api/webhooks/{hook}/rotate-secret")] {
        let refused = browser.post_json(&path, &json!({})).await;
        assert!(is_refused(&refused), "{path}: {}", refused.text);
    }
    let refused = browser.post_json("/api/account/upgrade", &json!({"plan": "pro"})).await;
    assert!(is_refused(&refused), "{}", refused.text);
    for path in [format!("/api/forms/{form}"), format!("/api/forms/{form}/submissions?email=a@b.co")] {
        let refused = browser.delete(&path).await;
        assert!(is_refused(&refused), "{path}: {}", refused.text);
    }
    let revoked = browser.delete(&format!("/api/keys/{key}")).await;
    assert_eq!(revoked.status, StatusCode::OK, "a key can always be revoked: {}", revoked.text);

    fixture.a.set_overrides(Overrides { signed_in_since: Some(TimeDelta::zero()), ..Overrides::default() });
    assert_eq!(sign_in_again(&fixture, &mut browser, "ada").await.status, StatusCode::SEE_OTHER);
    let deleted = browser.delete(&format!("/api/forms/{form}")).await;
    assert_eq!(deleted.status, StatusCode::OK, "{}", deleted.text);
}

#[tokio::test]
async fn a_provider_that_did_not_ask_for_the_credentials_makes_no_session_fresh() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.signed_in("ada").await;
    fixture.advance_clock(TimeDelta::hours(1));
    for since in [None, Some(TimeDelta::minutes(17)), Some(TimeDelta::days(1))] {
        fixture.a.set_overrides(Overrides { signed_in_since: since, ..Overrides::default() });
        let answered = sign_in_again(&fixture, &mut browser, "ada").await;
        assert_eq!(answered.status, StatusCode::BAD_REQUEST, "{since:?}: {}", answered.text);
        assert!(is_refused(&browser.post_json("/api/keys", &json!({"label": "k"})).await));
    }
}

#[tokio::test]
async fn an_api_key_needs_no_sign_in() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.signed_in("ada").await;
    let key = json_of(&browser.post_json("/api/keys", &json!({"label": "k"})).await);
    fixture.advance_clock(TimeDelta::hours(1));
    let bearer = format!("Bearer {}", key["key"].as_str().unwrap());
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = json!({"label": "k2"}).to_string();
    let created =
        crate::browser::send(&fixture.router, http::Method::POST, "/api/keys", &headers, &body).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.text);
}

#[tokio::test]
async fn a_person_sees_and_ends_their_own_sessions_only() {
    let fixture = Fixture::start().await;
    let mut laptop = fixture.signed_in("ada").await;
    fixture.advance_clock(TimeDelta::minutes(5));
    let mut phone = fixture.signed_in("ada").await;
    let mut stranger = fixture.signed_in("eve").await;

    let current = json_of(&laptop.get("/api/session").await);
    assert_eq!(current["isCurrent"], true, "{current}");
    assert_eq!(current["accounts"][0]["isCurrent"], true, "{current}");
    assert_eq!(current["identity"]["provider"], json!(fixture.a.issuer));
    let signed_in: chrono::DateTime<chrono::Utc> = current["signedInAt"].as_str().unwrap().parse().unwrap();
    let fresh_until: chrono::DateTime<chrono::Utc> = current["freshUntil"].as_str().unwrap().parse().unwrap();
    assert_eq!(fresh_until - signed_in, TimeDelta::minutes(15));

    let listed = json_of(&phone.get("/api/sessions").await);
    let sessions = listed["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2, "{listed}");
    assert_eq!((&sessions[0]["isCurrent"], &sessions[1]["isCurrent"]), (&json!(true), &json!(false)));
    assert_eq!(sessions[1]["id"], current["id"]);
    assert!(!listed.to_string().contains(&phone.cookies["session"]), "no secret is shown");

    let path = format!("/api/sessions/{}", current["id"].as_str().unwrap());
    assert_eq!(stranger.delete(&path).await.status, StatusCode::NOT_FOUND);
    assert!(laptop.is_signed_in().await);
    assert_eq!(phone.delete(&path).await.status, StatusCode::OK);
    assert_eq!(laptop.get("/api/session").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(phone.delete(&path).await.status, StatusCode::NOT_FOUND);
    assert!(phone.is_signed_in().await);
}
