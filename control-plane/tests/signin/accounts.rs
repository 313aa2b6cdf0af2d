//! One's accounts: a first one, another one, and never somebody else's.

use http::StatusCode;
use tokio::task::JoinSet;

use crate::browser::Browser;
use crate::stand::Stand;

async fn current(browser: &mut Browser) -> String {
    let page = browser.get("/account").await.text;
    let after = page.split_once("<dt>Id</dt><dd><code>").unwrap().1;
    after.split_once('<').unwrap().0.to_owned()
}

#[tokio::test]
async fn whoever_has_no_account_gets_a_claimed_one_with_a_site() {
    let stand = Stand::start().await;
    let mut browser = stand.signed_in("ada").await;
    assert!(browser.get("/account").await.text.contains("Make a free account"));
    let made = browser.post("/account/new", &[]).await;
    assert_eq!((made.status, made.header("location")), (StatusCode::SEE_OTHER, "/account"));
    let page = browser.get("/account").await.text;
    assert!(page.contains(".localhost:8080/") && page.contains("<dd>free</dd>"), "{page}");
    let counted = "select (a.claimed_at is not null and a.claim_deadline is null and u.subdomains = 1)::text
                   from accounts a join usage u on u.account_id = a.id";
    assert_eq!(stand.texts(counted).await, ["true"]);
}

#[tokio::test]
async fn asked_for_many_times_at_once_there_is_one_first_account() {
    let stand = Stand::start().await;
    let browser = stand.signed_in("ada").await;
    let mut asking = JoinSet::new();
    for _ in 0..10 {
        let mut browser = browser.clone();
        asking.spawn(async move { browser.post("/account/new", &[]).await.status });
    }
    assert_eq!(asking.join_all().await, [StatusCode::SEE_OTHER; 10]);
    assert_eq!(stand.texts("select a::text from accounts a").await.len(), 1);
}

#[tokio::test]
async fn one_switches_among_ones_own_accounts_and_to_nobody_elses() {
    let stand = Stand::start().await;
    let mut ada = stand.signed_in("ada").await;
    let mut own = Vec::new();
    for _ in 0..2 {
        let trial = stand.trial().await;
        ada.post(&trial.path, &[]).await;
        own.push(current(&mut ada).await);
    }
    let switched = ada.post("/account/switch", &[("account", &own[0])]).await;
    assert_eq!(switched.header("location"), "/account");
    assert_eq!(current(&mut ada).await, own[0]);

    let mut eve = stand.signed_in("eve").await;
    eve.post("/account/new", &[]).await;
    let hers = current(&mut eve).await;
    for wrong in [own[1].as_str(), "00000000-0000-0000-0000-000000000000", "garbage", ""] {
        let answer = eve.post("/account/switch", &[("account", wrong)]).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{wrong}");
        assert_eq!(current(&mut eve).await, hers);
    }
}

#[tokio::test]
async fn the_api_acts_on_the_account_that_was_just_made_or_switched_to() {
    let stand = Stand::that_remembers().await;
    let mut browser = stand.signed_in("ada").await;
    assert_eq!(browser.account().await.0, StatusCode::UNAUTHORIZED, "there is no account yet");
    browser.post("/account/new", &[]).await;
    let made = current(&mut browser).await;
    assert_eq!(browser.account().await.1["id"], made.as_str());
    let trial = stand.trial().await;
    browser.post(&trial.path, &[]).await;
    let claimed = current(&mut browser).await;
    for account in [&made, &claimed, &made] {
        browser.post("/account/switch", &[("account", account)]).await;
        let (status, shown) = browser.account().await;
        assert_eq!((status, shown["id"].as_str()), (StatusCode::OK, Some(account.as_str())));
    }
}

#[tokio::test]
async fn a_session_outlives_its_account_without_one() {
    let stand = Stand::start().await;
    let mut browser = stand.signed_in("ada").await;
    for _ in 0..2 {
        let trial = stand.trial().await;
        browser.post(&trial.path, &[]).await;
    }
    let gone = current(&mut browser).await;
    stand.execute(&format!("delete from accounts where id = '{gone}'")).await;
    let page = browser.get("/account").await.text;
    assert!(page.contains("The account you worked on is gone") && !page.contains(&gone), "{page}");
    let left = stand.texts("select account_id::text from identity_accounts").await;
    browser.post("/account/switch", &[("account", &left[0])]).await;
    assert_eq!(current(&mut browser).await, left[0]);
}

#[tokio::test]
async fn signing_in_again_works_on_the_account_that_came_last() {
    let stand = Stand::start().await;
    let mut browser = stand.signed_in("ada").await;
    for _ in 0..2 {
        stand.later(chrono::TimeDelta::minutes(1));
        let trial = stand.trial().await;
        browser.post(&trial.path, &[]).await;
    }
    let last = current(&mut browser).await;
    browser.post("/logout", &[]).await;
    assert_eq!(current(&mut stand.signed_in("ada").await).await, last);
}

#[tokio::test]
async fn an_account_is_found_to_be_its_holders() {
    let stand = Stand::start().await;
    stand.a.says(crate::provider::Says { email: Some("ada@example.com".to_owned()), ..Default::default() });
    let mut browser = stand.signed_in("ada").await;
    browser.post("/account/new", &[]).await;
    let account = current(&mut browser).await.parse().unwrap();
    let mut conn = store::acquire(&stand.database.db).await.unwrap();
    let holder = store::identities::find_holder(&mut conn, account).await.unwrap().unwrap();
    assert_eq!((holder.issuer, holder.email.as_deref()), (stand.a.issuer.clone(), Some("ada@example.com")));
    assert!(store::identities::find_holder(&mut conn, uuid::Uuid::nil()).await.unwrap().is_none());
}
