//! Consent of `notifyEmail` recipients, by a link that is mailed once.

use domain::encryption::MasterKey;
use domain::recipients::LINK_PURPOSE;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::browser::send;
use crate::fixture::{BASE, Fixture, MASTER_KEY};

const RECIPIENTS: &str =
    "select address || ' ' || coalesce(has_agreed::text, 'pending') from mail_recipients order by 1";

async fn call(fixture: &Fixture, key: &str, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let response = send(&fixture.router, method, path, &headers, &body).await;
    (response.status.as_u16(), serde_json::from_str(&response.text).unwrap())
}

/// The key of a claimed account: others may not have mails sent to new addresses.
async fn claimed_key(fixture: &Fixture) -> String {
    let key = fixture.trial().await.key;
    fixture.execute("update accounts set claimed_at = now()").await;
    key
}

/// Creates a form that notifies this address; returns its path or the problem.
async fn form(fixture: &Fixture, key: &str, address: &str) -> Result<String, (u16, Value)> {
    let fields = json!([{"name": "a", "label": "A", "type": "text"}]);
    let form = json!({"name": "F", "fields": fields, "notifyEmail": address});
    match call(fixture, key, Method::POST, "/api/forms", &form).await {
        (201, created) => Ok(format!("/api/forms/{}", created["formId"].as_str().unwrap())),
        rejected => Err(rejected),
    }
}

async fn is_confirmed(fixture: &Fixture, key: &str, form: &str) -> Value {
    call(fixture, key, Method::GET, form, &Value::Null).await.1["notifyEmailConfirmed"].clone()
}

/// The path of the mailed link.
async fn link(fixture: &Fixture) -> String {
    let sealed = fixture.texts("select encode(sealed_link, 'hex') from mail_recipients").await.remove(0);
    let sealed: Vec<u8> =
        (0..sealed.len()).step_by(2).map(|at| u8::from_str_radix(&sealed[at..at + 2], 16).unwrap()).collect();
    let link = MasterKey::from_hex(MASTER_KEY).unwrap().open(LINK_PURPOSE, &sealed).unwrap();
    String::from_utf8(link).unwrap().strip_prefix(BASE).unwrap().to_owned()
}

#[tokio::test]
async fn an_address_is_confirmed_only_by_its_own_link() {
    let fixture = Fixture::start().await;
    let key = claimed_key(&fixture).await;
    let form = form(&fixture, &key, "Ana@example.com").await.unwrap();
    assert_eq!(is_confirmed(&fixture, &key, &form).await, false);
    assert_eq!(fixture.texts(RECIPIENTS).await, ["ana@example.com pending"]);
    let (link, mut browser) = (link(&fixture).await, fixture.browser());
    let page = browser.get(&link).await;
    assert!(page.text.contains("ana@example.com") && page.text.contains("Yes, mail me"), "{}", page.text);
    for origin in [None, Some("https://evil.test")] {
        let rejected = browser.post_from(origin, &link, &[("answer", "yes")]).await;
        assert_eq!(rejected.status, StatusCode::FORBIDDEN);
    }
    assert_eq!(is_confirmed(&fixture, &key, &form).await, false, "fetching the page changes nothing");
    assert_eq!(browser.get(&format!("{link}x")).await.status, StatusCode::NOT_FOUND);

    let agreed = browser.post(&link, &[("answer", "yes")]).await;
    assert!(agreed.text.contains("You get these mails"), "{}", agreed.text);
    assert_eq!(is_confirmed(&fixture, &key, &form).await, true);
    let stopped = browser.post(&link, &[("answer", "no")]).await;
    assert!(stopped.text.contains("You get no mails"), "{}", stopped.text);
    assert_eq!(is_confirmed(&fixture, &key, &form).await, false);
    let edit = json!({"notifyEmail": "ana@EXAMPLE.com"});
    assert_eq!(call(&fixture, &key, Method::PUT, &form, &edit).await.0, 200);
    assert_eq!(
        fixture.texts(RECIPIENTS).await,
        ["ana@example.com false"],
        "and gets no second confirmation mail"
    );
    let cleared = call(&fixture, &key, Method::PUT, &form, &json!({"notifyEmail": null})).await.1;
    assert_eq!(cleared["notifyEmailConfirmed"], Value::Null);
}

#[tokio::test]
async fn the_owners_verified_address_needs_no_confirmation() {
    let fixture = Fixture::start().await;
    let key = claimed_key(&fixture).await;
    for (verified, confirmed, request) in [(true, true, 0), (false, false, 1)] {
        fixture
            .execute(&format!(
                "delete from identity_accounts; delete from identities;
                 insert into identities (id, issuer, subject, email, email_verified, created_at)
                 values (gen_random_uuid(), 'i', 's', 'Owner@example.com', {verified}, now());
                 insert into identity_accounts (account_id, identity_id, added_at)
                 select a.id, i.id, now() from accounts a, identities i"
            ))
            .await;
        let form = form(&fixture, &key, "owner@example.com").await.unwrap();
        assert_eq!(is_confirmed(&fixture, &key, &form).await, confirmed);
        assert_eq!(fixture.texts(RECIPIENTS).await.len(), request);
    }
}

#[tokio::test]
async fn confirmation_mails_are_rate_limited_per_account_and_address() {
    let fixture = Fixture::with(&["recipients.max_per_account=2", "recipients.max_per_address=1"]).await;
    let (one, other) = (claimed_key(&fixture).await, claimed_key(&fixture).await);
    for address in ["a@example.com", "b@example.com", "a@example.com"] {
        form(&fixture, &one, address).await.unwrap();
    }
    for (key, address) in [(&one, "c@example.com"), (&other, "A@example.com")] {
        let (status, problem) = form(&fixture, key, address).await.unwrap_err();
        assert_eq!((status, &problem["code"]), (429, &json!("rate_limited")), "{problem}");
    }
    assert_eq!(fixture.texts(RECIPIENTS).await, ["a@example.com pending", "b@example.com pending"]);
    let forms = call(&fixture, &other, Method::GET, "/api/forms", &Value::Null).await.1;
    assert_eq!(forms["forms"], json!([]), "and no form is created");
}

#[tokio::test]
async fn an_unclaimed_trial_can_not_have_mails_sent_to_strangers() {
    let fixture = Fixture::start().await;
    let key = fixture.trial().await.key;
    let (status, problem) = form(&fixture, &key, "stranger@example.com").await.unwrap_err();
    assert_eq!((status, &problem["code"]), (403, &json!("plan_restricted")), "{problem}");
    assert!(fixture.texts(RECIPIENTS).await.is_empty());
}

#[tokio::test]
async fn tags_of_one_mailbox_do_not_multiply_its_confirmation_mails() {
    let fixture = Fixture::with(&["recipients.max_per_address=2"]).await;
    for address in ["ana+1@example.com", "Ana+2@example.com"] {
        let key = claimed_key(&fixture).await;
        form(&fixture, &key, address).await.unwrap();
    }
    for address in ["ana@example.com", "ana+3@example.com", "ana+1@example.com"] {
        let key = claimed_key(&fixture).await;
        let (status, problem) = form(&fixture, &key, address).await.unwrap_err();
        assert_eq!((status, &problem["code"]), (429, &json!("rate_limited")), "{address}: {problem}");
    }
    let key = claimed_key(&fixture).await;
    form(&fixture, &key, "bea@example.com").await.unwrap();
    assert_eq!(
        fixture.texts(RECIPIENTS).await,
        ["ana+1@example.com pending", "ana+2@example.com pending", "bea@example.com pending"]
    );
}
