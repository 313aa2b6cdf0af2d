//! A visitor's accounts: the first one, further ones, and no other visitor's.

use cache::BusEvent;
use contract::{Change, Signal};
use futures::StreamExt;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::browser::Browser;
use crate::fixture::Fixture;

async fn current(browser: &mut Browser) -> String {
    let page = browser.get("/account").await.text;
    let after = page.split_once("<dt>Id</dt><dd><code>").unwrap().1;
    after.split_once('<').unwrap().0.to_owned()
}

#[tokio::test]
async fn a_first_sign_in_makes_a_free_account_that_creates_keys() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.signed_in("ada").await;
    let (status, account) = browser.account().await;
    assert_eq!((status, &account["plan"]), (StatusCode::OK, &json!("free")), "{account}");
    assert_eq!((&account["claimed"], &account["claimDeadline"]), (&json!(true), &json!(null)), "{account}");
    let created = browser.post_json("/api/keys", &json!({"label": "first"})).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.text);
    let key: Value = serde_json::from_str(&created.text).unwrap();
    assert_eq!(fixture.account(key["key"].as_str().unwrap()).await.1["id"], account["id"]);

    browser.post("/logout", &[]).await;
    let mut again = fixture.signed_in("ada").await;
    assert_eq!(again.account().await.1["id"], account["id"], "a later sign-in makes no other");
    assert_eq!(fixture.texts("select a::text from accounts a").await.len(), 1);
}

#[tokio::test]
async fn concurrent_first_sign_ins_make_one_account() {
    let fixture = Fixture::start().await;
    let mut signing_in = JoinSet::new();
    for _ in 0..8 {
        let mut browser = fixture.browser();
        let provider_url = browser.begin("a", "/account").await;
        let params = fixture.a.approve(&provider_url, "ada");
        signing_in.spawn(async move { browser.call_callback("a", &params).await.status });
    }
    assert_eq!(signing_in.join_all().await, [StatusCode::SEE_OTHER; 8]);
    assert_eq!(fixture.texts("select a::text from accounts a").await.len(), 1);
    let current = "select distinct coalesce(s.account_id::text, 'none') from sessions s";
    assert_eq!(fixture.texts(current).await, fixture.texts("select id::text from accounts").await);
}

#[tokio::test]
async fn a_sign_in_that_began_on_a_claim_page_makes_no_account() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.signed_in_to_claim("ada").await;
    assert_eq!(browser.account().await.0, StatusCode::UNAUTHORIZED);
    assert!(browser.get("/account").await.text.contains("You have no account yet"));
    assert_eq!(fixture.texts("select a::text from accounts a").await.len(), 0);
    // An ordinary sign-in of the same person makes up for it.
    let mut later = fixture.signed_in("ada").await;
    assert_eq!(later.account().await.0, StatusCode::OK);
    assert_eq!(fixture.texts("select a::text from accounts a").await.len(), 1);
}

#[tokio::test]
async fn edges_are_notified_of_the_site_of_a_first_account() {
    let fixture = Fixture::start().await;
    let mut events = std::pin::pin!(fixture.app.bus.subscribe());
    assert_eq!(events.next().await, Some(BusEvent::Lagged));
    let (_, account) = fixture.signed_in("ada").await.account().await;
    let host = account["subdomain"].as_str().unwrap().to_owned();
    assert_eq!(events.next().await, Some(BusEvent::Message(Signal::Changed(Change::Host { host }))));
}

#[tokio::test]
async fn a_visitor_without_an_account_gets_a_claimed_one_with_a_site() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.signed_in_to_claim("ada").await;
    assert!(browser.get("/account").await.text.contains("Create a free account"));
    let created = browser.post("/account/new", &[]).await;
    assert_eq!((created.status, created.header("location")), (StatusCode::SEE_OTHER, "/account"));
    let page = browser.get("/account").await.text;
    assert!(page.contains(".localhost:8080/") && page.contains("<dd>free</dd>"), "{page}");
    let counted = "select (a.claimed_at is not null and a.claim_deadline is null and u.subdomains = 1)::text
                   from accounts a join usage u on u.account_id = a.id";
    assert_eq!(fixture.texts(counted).await, ["true"]);
}

#[tokio::test]
async fn concurrent_requests_create_one_first_account() {
    let fixture = Fixture::start().await;
    let browser = fixture.signed_in_to_claim("ada").await;
    let mut requests = JoinSet::new();
    for _ in 0..10 {
        let mut browser = browser.clone();
        requests.spawn(async move { browser.post("/account/new", &[]).await.status });
    }
    assert_eq!(requests.join_all().await, [StatusCode::SEE_OTHER; 10]);
    assert_eq!(fixture.texts("select a::text from accounts a").await.len(), 1);
}

#[tokio::test]
async fn a_visitor_switches_only_among_own_accounts() {
    let fixture = Fixture::start().await;
    let mut ada = fixture.signed_in("ada").await;
    let mut own = Vec::new();
    for _ in 0..2 {
        let trial = fixture.trial().await;
        ada.post(&trial.path, &[]).await;
        own.push(current(&mut ada).await);
    }
    let switched = ada.post("/account/switch", &[("account", &own[0])]).await;
    assert_eq!(switched.header("location"), "/account");
    assert_eq!(current(&mut ada).await, own[0]);

    let mut other_visitor = fixture.signed_in("eve").await;
    other_visitor.post("/account/new", &[]).await;
    let other_account = current(&mut other_visitor).await;
    for wrong in [own[1].as_str(), "00000000-0000-0000-0000-000000000000", "garbage", ""] {
        let response = other_visitor.post("/account/switch", &[("account", wrong)]).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{wrong}");
        assert_eq!(current(&mut other_visitor).await, other_account);
    }
}

#[tokio::test]
async fn the_api_uses_the_new_current_account_immediately() {
    let fixture = Fixture::with_long_cache().await;
    let mut browser = fixture.signed_in_to_claim("ada").await;
    assert_eq!(browser.account().await.0, StatusCode::UNAUTHORIZED, "there is no account yet");
    browser.post("/account/new", &[]).await;
    let created = current(&mut browser).await;
    assert_eq!(browser.account().await.1["id"], created.as_str());
    let trial = fixture.trial().await;
    browser.post(&trial.path, &[]).await;
    let claimed = current(&mut browser).await;
    for account in [&created, &claimed, &created] {
        browser.post("/account/switch", &[("account", account)]).await;
        let (status, shown) = browser.account().await;
        assert_eq!((status, shown["id"].as_str()), (StatusCode::OK, Some(account.as_str())));
    }
}

#[tokio::test]
async fn a_session_survives_the_deletion_of_its_account() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.signed_in("ada").await;
    for _ in 0..2 {
        let trial = fixture.trial().await;
        browser.post(&trial.path, &[]).await;
    }
    let deleted = current(&mut browser).await;
    fixture.execute(&format!("delete from accounts where id = '{deleted}'")).await;
    let page = browser.get("/account").await.text;
    assert!(page.contains("Your current account no longer exists") && !page.contains(&deleted), "{page}");
    let remaining = fixture.texts("select account_id::text from identity_accounts").await;
    browser.post("/account/switch", &[("account", &remaining[0])]).await;
    assert_eq!(current(&mut browser).await, remaining[0]);
}

#[tokio::test]
async fn signing_in_selects_the_latest_account() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.signed_in("ada").await;
    for _ in 0..2 {
        fixture.advance_clock(chrono::TimeDelta::minutes(1));
        let trial = fixture.trial().await;
        browser.post(&trial.path, &[]).await;
    }
    let last = current(&mut browser).await;
    browser.post("/logout", &[]).await;
    assert_eq!(current(&mut fixture.signed_in("ada").await).await, last);
}

#[tokio::test]
async fn an_account_shows_its_holder() {
    let fixture = Fixture::start().await;
    fixture.a.set_overrides(crate::provider::Overrides {
        email: Some("ada@example.com".to_owned()),
        ..Default::default()
    });
    let mut browser = fixture.signed_in("ada").await;
    browser.post("/account/new", &[]).await;
    let account = current(&mut browser).await.parse().unwrap();
    let mut conn = store::acquire(&fixture.database.db).await.unwrap();
    let holder = store::identities::find_holder(&mut conn, account).await.unwrap().unwrap();
    assert_eq!((holder.issuer, holder.email.as_deref()), (fixture.a.issuer.clone(), Some("ada@example.com")));
    assert!(store::identities::find_holder(&mut conn, uuid::Uuid::nil()).await.unwrap().is_none());
}
