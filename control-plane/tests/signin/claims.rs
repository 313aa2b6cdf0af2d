//! Claims of trials: once, before the deadline, and only by an explicit POST.

use cache::BusEvent;
use chrono::TimeDelta;
use contract::{Change, Signal};
use futures::StreamExt;
use http::{Method, StatusCode};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::browser::send;
use crate::fixture::{BASE, Fixture};

#[tokio::test]
async fn a_claimed_trial_is_permanent_and_its_key_keeps_working() {
    let fixture = Fixture::start().await;
    let trial = fixture.trial().await;
    let mut browser = fixture.browser();
    let page = browser.get(&trial.path).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("Sign in to claim") && !page.text.contains("<form"), "{}", page.text);
    let response = browser.sign_in("a", &fixture.a, "ada", &trial.path).await;
    assert_eq!(response.header("location"), trial.path);
    let page = browser.get(&trial.path).await.text;
    assert!(page.contains(&trial.key[.."st_trial_".len() + 4]) && !page.contains(&trial.key), "{page}");

    let done = browser.post(&trial.path, &[]).await;
    assert_eq!((done.status, done.header("location")), (StatusCode::SEE_OTHER, "/console"));
    assert!(browser.get("/account").await.text.contains("Yours since"));
    fixture.advance_clock(TimeDelta::days(2));
    let (status, account) = fixture.account(&trial.key).await;
    assert_eq!((status, &account["_meta"]["claimed"]), (StatusCode::OK, &true.into()));
    assert_eq!(account["claimDeadline"], Value::Null);
}

#[tokio::test]
async fn fetching_the_link_changes_nothing() {
    let fixture = Fixture::start().await;
    let trial = fixture.trial().await;
    let everything = "select a::text from accounts a union all select k::text from api_keys k
                      union all select o::text from identity_accounts o";
    let mut browser = fixture.signed_in("ada").await;
    let before = fixture.texts(everything).await;
    for method in [Method::GET, Method::HEAD, Method::GET] {
        let preview = [("user-agent", "Slackbot-LinkExpanding 1.0")];
        assert_eq!(send(&fixture.router, method, &trial.path, &preview, "").await.status, StatusCode::OK);
        assert_eq!(browser.get(&trial.path).await.status, StatusCode::OK);
    }
    assert_eq!(fixture.texts(everything).await, before);
    assert_eq!(browser.post(&trial.path, &[]).await.header("location"), "/console");
}

#[tokio::test]
async fn a_link_works_once() {
    let fixture = Fixture::start().await;
    let trial = fixture.trial().await;
    let mut ada = fixture.signed_in_to_claim("ada").await;
    let mut eve = fixture.signed_in_to_claim("eve").await;
    ada.post(&trial.path, &[]).await;
    for (browser, title) in [(&mut ada, "This is yours already"), (&mut eve, "Already claimed")] {
        for response in [browser.get(&trial.path).await, browser.post(&trial.path, &[]).await] {
            assert_eq!(response.status, StatusCode::GONE);
            assert!(response.text.contains(title), "{}", response.text);
        }
    }
    assert!(eve.get("/account").await.text.contains("You have no account yet"));
}

#[tokio::test]
async fn of_twenty_concurrent_claims_one_succeeds() {
    let fixture = Fixture::start().await;
    let trial = fixture.trial().await;
    let mut claiming = JoinSet::new();
    for number in 0..20 {
        let mut browser = fixture.signed_in_to_claim(&format!("person-{number}")).await;
        let path = trial.path.clone();
        claiming.spawn(async move { browser.post(&path, &[]).await.status });
    }
    let statuses = claiming.join_all().await;
    let count = |status| statuses.iter().filter(|one| **one == status).count();
    assert_eq!((count(StatusCode::SEE_OTHER), count(StatusCode::GONE)), (1, 19), "{statuses:?}");
    assert_eq!(fixture.texts("select o::text from identity_accounts o").await.len(), 1);
    let current = "select s::text from sessions s where s.account_id is not null";
    assert_eq!(fixture.texts(current).await.len(), 1);
}

#[tokio::test]
async fn a_link_works_until_its_deadline() {
    let fixture = Fixture::start().await;
    let (late, early) = (fixture.trial().await, fixture.trial().await);
    fixture.advance_clock(TimeDelta::hours(24) - TimeDelta::milliseconds(1));
    let mut browser = fixture.signed_in("ada").await;
    assert_eq!(browser.post(&early.path, &[]).await.status, StatusCode::SEE_OTHER);
    fixture.advance_clock(TimeDelta::milliseconds(1));
    for response in [browser.get(&late.path).await, browser.post(&late.path, &[]).await] {
        assert_eq!(response.status, StatusCode::GONE);
        assert!(response.text.contains("Too late to claim"), "{}", response.text);
    }
}

#[tokio::test]
async fn unknown_links_and_deleted_trials_are_reported() {
    let fixture = Fixture::start().await;
    let trial = fixture.trial().await;
    fixture.execute("delete from accounts").await;
    let mut browser = fixture.signed_in("ada").await;
    for path in ["/claim/never-given-out", trial.path.as_str()] {
        for response in [browser.get(path).await, browser.post(path, &[]).await] {
            assert_eq!(response.status, StatusCode::NOT_FOUND);
            assert!(response.text.contains("Nothing to claim"), "{}", response.text);
        }
    }
}

#[tokio::test]
async fn claiming_requires_a_session() {
    let fixture = Fixture::start().await;
    let trial = fixture.trial().await;
    let response = fixture.browser().post(&trial.path, &[]).await;
    assert_eq!(response.status, StatusCode::SEE_OTHER);
    let return_to = trial.path.replace('/', "%2F");
    assert_eq!(response.header("location"), format!("/login?returnTo={return_to}"));
    let (_, account) = fixture.account(&trial.key).await;
    assert_eq!(account["_meta"]["claimed"], false);
}

#[tokio::test]
async fn selected_keys_are_revoked_with_their_descendants() {
    let fixture = Fixture::start().await;
    let trial = fixture.trial().await;
    fixture.advance_clock(TimeDelta::seconds(1));
    let other = fixture.trial().await;
    let child = "insert into api_keys
             (id, account_id, fingerprint, shown_prefix, label, scopes, created_at, parent_id)
         select gen_random_uuid(), account_id, 'x', 'st_live_1234', 'a child', scopes, created_at, id
         from api_keys order by created_at limit 1";
    fixture.execute(child).await;
    let expired = "insert into api_keys
             (id, account_id, fingerprint, shown_prefix, label, scopes, created_at, expires_at)
         select gen_random_uuid(), account_id, 'y', 'st_live_5678', 'expired', scopes, created_at, created_at
         from api_keys order by created_at limit 1";
    fixture.execute(expired).await;
    let mut browser = fixture.signed_in("ada").await;
    let page = browser.get(&trial.path).await.text;
    assert!(page.contains("st_live_1234") && !page.contains("st_live_5678"), "{page}");
    let ids = fixture.texts("select id::text from api_keys where label = 'trial' order by created_at").await;
    let (own, foreign) = (ids[0].as_str(), ids[1].as_str());
    browser.post(&trial.path, &[("revoke", own), ("revoke", foreign), ("revoke", "garbage")]).await;
    assert_eq!(fixture.account(&trial.key).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(
        fixture.account(&other.key).await.0,
        StatusCode::OK,
        "another account's key must not be revoked"
    );
    let live = "select label from api_keys where revoked_at is null and expires_at is null";
    assert_eq!(fixture.texts(live).await, ["trial"]);
}

#[tokio::test]
async fn a_claim_adds_an_account_and_merges_nothing() {
    let fixture = Fixture::start().await;
    let trials = [fixture.trial().await, fixture.trial().await];
    let mut browser = fixture.signed_in("ada").await;
    let mut accounts = Vec::new();
    for trial in &trials {
        browser.post(&trial.path, &[]).await;
        accounts.push(fixture.account(&trial.key).await.1["id"].as_str().unwrap().to_owned());
    }
    assert_ne!(accounts[0], accounts[1]);
    let page = browser.get("/account").await.text;
    let (current, others) = page.split_once("Your other accounts").unwrap();
    assert!(current.contains(&accounts[1]) && others.contains(&accounts[0]), "{page}");
}

#[tokio::test]
async fn the_api_applies_a_claim_and_revocations_immediately() {
    let fixture = Fixture::with_long_cache().await;
    let (first, second) = (fixture.trial().await, fixture.trial().await);
    let mut browser = fixture.signed_in_to_claim("ada").await;
    assert_eq!(browser.account().await.0, StatusCode::UNAUTHORIZED, "there is no account yet");
    for trial in [&first, &second] {
        let (_, account) = fixture.account(&trial.key).await;
        assert_eq!(account["_meta"]["claimed"], false);
        browser.post(&trial.path, &[]).await;
        assert_eq!(fixture.account(&trial.key).await.1["_meta"]["claimed"], true);
        let (status, own) = browser.account().await;
        assert_eq!((status, &own["id"]), (StatusCode::OK, &account["id"]));
    }

    let third = fixture.trial().await;
    assert_eq!(fixture.account(&third.key).await.0, StatusCode::OK);
    let page = browser.get(&third.path).await.text;
    let key_id = page.split_once("name=\"revoke\" value=\"").unwrap().1.split_once('"').unwrap().0;
    browser.post(&third.path, &[("revoke", key_id)]).await;
    assert_eq!(fixture.account(&third.key).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn edges_are_notified_that_a_site_left_its_trial() {
    let fixture = Fixture::start().await;
    let trial = fixture.trial().await;
    let (_, account) = fixture.account(&trial.key).await;
    let host = account["subdomain"].as_str().unwrap().to_owned();
    let mut browser = fixture.signed_in("ada").await;
    let mut events = std::pin::pin!(fixture.app.bus.subscribe());
    assert_eq!(events.next().await, Some(BusEvent::Lagged));
    browser.post(&trial.path, &[]).await;
    assert_eq!(events.next().await, Some(BusEvent::Message(Signal::Changed(Change::Host { host }))));
}

#[tokio::test]
async fn a_new_link_works_although_the_form_of_the_old_one_was_open() {
    let fixture = Fixture::start().await;
    let trial = fixture.trial().await;
    let mut browser = fixture.signed_in_to_claim("ada").await;
    assert!(browser.get(&trial.path).await.text.contains("<form"));
    let bearer = format!("Bearer {}", trial.key);
    let headers = [("authorization", bearer.as_str())];
    let made = send(&fixture.router, Method::POST, "/api/account/claim-link", &headers, "").await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.text);
    let link: Value = serde_json::from_str(&made.text).unwrap();
    let new_path = link["claimUrl"].as_str().unwrap().strip_prefix(BASE).unwrap();

    let old = browser.post(&trial.path, &[]).await;
    assert_eq!(old.status, StatusCode::NOT_FOUND, "{}", old.text);
    assert!(old.text.contains("replaced by a newer one"), "{}", old.text);
    assert_eq!(browser.post(new_path, &[]).await.header("location"), "/console");
    assert_eq!(fixture.account(&trial.key).await.1["_meta"]["claimed"], true);
}

#[tokio::test]
async fn a_sign_in_during_a_claim_makes_no_other_account() {
    let fixture = Fixture::start().await;
    let trial = fixture.trial().await;
    let mut claiming = fixture.signed_in_to_claim("ada").await;
    let mut signing_in = fixture.browser();
    let provider_url = signing_in.begin("a", "/account").await;
    let params = fixture.a.approve(&provider_url, "ada");
    // The claim stops at the account until both have begun.
    let account_id = fixture.account(&trial.key).await.1["id"].as_str().unwrap().parse().unwrap();
    let mut hold = store::begin(&fixture.database.db).await.unwrap();
    store::claims::lock_deadline(&mut hold, account_id).await.unwrap();
    let waiting = async |count: usize| {
        let waiting = "select pid::text from pg_stat_activity
                       where datname = current_database() and wait_event_type = 'Lock'";
        sandbox::test::until(async || fixture.texts(waiting).await.len() == count).await;
    };
    let claim = claiming.post(&trial.path, &[]);
    let sign_in = async {
        waiting(1).await;
        signing_in.call_callback("a", &params).await
    };
    let release = async {
        waiting(2).await;
        store::commit(hold).await.unwrap();
    };
    let (claimed, signed_in, ()) = tokio::join!(claim, sign_in, release);
    assert_eq!([claimed.status, signed_in.status], [StatusCode::SEE_OTHER; 2]);
    assert_eq!(fixture.texts("select account_id::text from identity_accounts").await.len(), 1);
    assert_eq!(fixture.texts("select id::text from accounts").await.len(), 1);
}
