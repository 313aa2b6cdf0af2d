//! A foreign site calls the API with the session cookie of a person who is signed in (cross-site request forgery).

use http::Method;
use serde_json::{Value, json};

use super::fixture::{Owner, http, with};
use crate::no_side_effects::Snapshot;

/// What a browser sends as the origin of a page that is not of this host.
const FOREIGN: [Option<&str>; 5] = [
    None,
    Some("null"),
    Some("https://evil.test"),
    Some("http://site.localhost:8080"),
    Some("https://localhost:8080"),
];

/// A person who is signed in.
struct Person {
    owner: Owner,
    session: String,
}

impl Person {
    async fn signed_in() -> Self {
        let owner = Owner::new(&[]).await;
        let session = owner.api.sign_in(owner.account_id).await;
        Self { owner, session }
    }

    async fn post(&self, origin: Option<&str>, path: &str, body: &Value) -> (u16, Value) {
        let mut headers = vec![("cookie", self.session.clone())];
        headers.extend(origin.map(|origin| ("origin", origin.to_owned())));
        let (status, response) = self.owner.api.send_with(Method::POST, path, &headers, body).await;
        (status.as_u16(), response)
    }

    /// Posts from foreign sites, which must change nothing, then from the own one, which succeeds.
    async fn check(&self, path: &str, body: &Value) {
        let before = Snapshot::take(&self.owner.api).await;
        for origin in FOREIGN {
            let (status, problem) = self.post(origin, path, body).await;
            assert_eq!((status, &problem["code"]), (403, &json!("foreign_origin")), "{origin:?}: {problem}");
        }
        assert_eq!(before.check().await, Ok(()));
        let (status, response) = self.post(Some("http://localhost:8080"), path, body).await;
        assert!((200..300).contains(&status), "{status} {response}");
        assert!(before.check().await.is_err());
    }
}

#[tokio::test]
async fn a_foreign_site_can_not_create_an_automation() {
    let person = Person::signed_in().await;
    person.check("/api/automations", &http()).await;
}

#[tokio::test]
async fn a_foreign_site_can_not_test_an_automation() {
    let person = Person::signed_in().await;
    let (path, _) = person.owner.automation(http()).await;
    person.check(&format!("{path}/test"), &json!({})).await;
}

#[tokio::test]
async fn a_foreign_site_can_not_cancel_a_run() {
    let person = Person::signed_in().await;
    let (path, created) = person.owner.automation(with(http(), "slug", json!("b"))).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let run_id = person.owner.trigger(url, &json!({})).await.run_id();
    person.check(&format!("{path}/runs/{run_id}/cancel"), &Value::Null).await;
}
