//! Whoever is named in a form's `notifyEmail` decides whether they are mailed: by a link that is mailed to them once.

use domain::recipients::LINK_PURPOSE;
use domain::sealing::MasterKey;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::browser::send;
use crate::stand::{BASE, Stand};

const RECIPIENTS: &str =
    "select address || ' ' || coalesce(has_agreed::text, 'asked') from mail_recipients order by 1";

async fn call(stand: &Stand, key: &str, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let answer = send(&stand.router, method, path, &headers, &body).await;
    (answer.status.as_u16(), serde_json::from_str(&answer.text).unwrap())
}

/// Makes a form that tells that address; gives its path, or the problem.
async fn form(stand: &Stand, key: &str, address: &str) -> Result<String, (u16, Value)> {
    let fields = json!([{"name": "a", "label": "A", "type": "text"}]);
    let form = json!({"name": "F", "fields": fields, "notifyEmail": address});
    match call(stand, key, Method::POST, "/api/forms", &form).await {
        (201, made) => Ok(format!("/api/forms/{}", made["formId"].as_str().unwrap())),
        refused => Err(refused),
    }
}

async fn is_confirmed(stand: &Stand, key: &str, form: &str) -> Value {
    call(stand, key, Method::GET, form, &Value::Null).await.1["notifyEmailConfirmed"].clone()
}

/// The path of the link that an address is mailed.
async fn link(stand: &Stand) -> String {
    let sealed = stand.texts("select encode(sealed_link, 'hex') from mail_recipients").await.remove(0);
    let sealed: Vec<u8> =
        (0..sealed.len()).step_by(2).map(|at| u8::from_str_radix(&sealed[at..at + 2], 16).unwrap()).collect();
    let link = MasterKey::from_hex(&"ab".repeat(32)).unwrap().open(LINK_PURPOSE, &sealed).unwrap();
    String::from_utf8(link).unwrap().strip_prefix(BASE).unwrap().to_owned()
}

#[tokio::test]
async fn an_address_is_confirmed_by_its_own_link_and_nothing_else() {
    let stand = Stand::start().await;
    let key = stand.trial().await.key;
    let form = form(&stand, &key, "Ana@example.com").await.unwrap();
    assert_eq!(is_confirmed(&stand, &key, &form).await, false);
    assert_eq!(stand.texts(RECIPIENTS).await, ["ana@example.com asked"]);
    let (link, mut browser) = (link(&stand).await, stand.browser());
    let page = browser.get(&link).await;
    assert!(page.text.contains("ana@example.com") && page.text.contains("Yes, mail me"), "{}", page.text);
    for origin in [None, Some("https://evil.test")] {
        let refused = browser.post_from(origin, &link, &[("answer", "yes")]).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
    }
    assert_eq!(is_confirmed(&stand, &key, &form).await, false, "looking at it changes nothing");
    assert_eq!(browser.get(&format!("{link}x")).await.status, StatusCode::NOT_FOUND);

    let agreed = browser.post(&link, &[("answer", "yes")]).await;
    assert!(agreed.text.contains("You get these mails"), "{}", agreed.text);
    assert_eq!(is_confirmed(&stand, &key, &form).await, true);
    let stopped = browser.post(&link, &[("answer", "no")]).await;
    assert!(stopped.text.contains("You get no mails"), "{}", stopped.text);
    assert_eq!(is_confirmed(&stand, &key, &form).await, false);
    let edit = json!({"notifyEmail": "ana@EXAMPLE.com"});
    assert_eq!(call(&stand, &key, Method::PUT, &form, &edit).await.0, 200);
    assert_eq!(stand.texts(RECIPIENTS).await, ["ana@example.com false"], "and is not asked again");
    let cleared = call(&stand, &key, Method::PUT, &form, &json!({"notifyEmail": null})).await.1;
    assert_eq!(cleared["notifyEmailConfirmed"], Value::Null);
}

#[tokio::test]
async fn the_owners_verified_address_needs_no_question() {
    let stand = Stand::start().await;
    let key = stand.trial().await.key;
    for (verified, confirmed, asked) in [(true, true, 0), (false, false, 1)] {
        stand
            .execute(&format!(
                "delete from identity_accounts; delete from identities;
                 insert into identities (id, issuer, subject, email, email_verified, created_at)
                 values (gen_random_uuid(), 'i', 's', 'Owner@example.com', {verified}, now());
                 insert into identity_accounts (account_id, identity_id, added_at)
                 select a.id, i.id, now() from accounts a, identities i"
            ))
            .await;
        let form = form(&stand, &key, "owner@example.com").await.unwrap();
        assert_eq!(is_confirmed(&stand, &key, &form).await, confirmed);
        assert_eq!(stand.texts(RECIPIENTS).await.len(), asked);
    }
}

#[tokio::test]
async fn neither_many_addresses_nor_one_address_often_are_asked() {
    let stand = Stand::with(&["recipients.max_per_account=2", "recipients.max_per_address=1"]).await;
    let (one, other) = (stand.trial().await.key, stand.trial().await.key);
    for address in ["a@example.com", "b@example.com", "a@example.com"] {
        form(&stand, &one, address).await.unwrap();
    }
    for (key, address) in [(&one, "c@example.com"), (&other, "A@example.com")] {
        let (status, problem) = form(&stand, key, address).await.unwrap_err();
        assert_eq!((status, &problem["code"]), (429, &json!("rate_limited")), "{problem}");
    }
    assert_eq!(stand.texts(RECIPIENTS).await, ["a@example.com asked", "b@example.com asked"]);
    let forms = call(&stand, &other, Method::GET, "/api/forms", &Value::Null).await.1;
    assert_eq!(forms["forms"], json!([]), "and the form is not made");
}
