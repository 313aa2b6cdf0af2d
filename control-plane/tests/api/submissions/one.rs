//! One submission: read by its id, in the form's order, and deleted with all that it caused.

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::list::{form, insert_submission};
use crate::harness::Api;

const AT: &str = "2027-01-30T10:00:00Z";

/// Postgres would order the answers by the length of their names.
fn fields() -> Value {
    json!([
        {"name": "full_name", "label": "Name", "type": "text"},
        {"name": "email", "label": "E-mail", "type": "email"},
        {"name": "a", "label": "A", "type": "text"},
    ])
}

struct Owner {
    api: Api,
    key: String,
    form: Uuid,
}

impl Owner {
    async fn new() -> Self {
        let api = Api::start(&[]).await;
        let (key, _) = api.trial_on(Plan::Pro).await;
        let form = form(&api, &key, fields()).await;
        Self { api, key, form }
    }

    async fn call(&self, method: Method, rest: &str, body: &Value) -> (StatusCode, Value) {
        let path = format!("/api/forms/{}{rest}", self.form);
        self.api.send(method, &path, Some(&self.key), body).await
    }

    async fn read(&self, id: Uuid) -> (StatusCode, Value) {
        self.call(Method::GET, &format!("/submissions/{id}"), &Value::Null).await
    }

    async fn delete(&self, id: Uuid) -> (StatusCode, Value) {
        self.call(Method::DELETE, &format!("/submissions/{id}"), &Value::Null).await
    }
}

#[tokio::test]
async fn a_submission_is_read_by_its_id_in_the_order_of_the_form() {
    let owner = Owner::new().await;
    let payload = json!({"a": "1", "gone": "2", "email": "a@b.co", "full_name": "Ana"});
    let id = insert_submission(&owner.api, owner.form, AT, "spam", &payload).await;
    let (status, read) = owner.read(id).await;
    assert_eq!(status, StatusCode::OK, "{read}");
    assert_eq!((&read["data"]["id"], &read["data"]["status"]), (&json!(id), &json!("spam")));
    let ordered = r#"{"full_name":"Ana","email":"a@b.co","a":"1","gone":"2"}"#;
    assert_eq!(read["data"]["payload"].to_string(), ordered);
    let (_, list) = owner.call(Method::GET, "/submissions?status=all", &Value::Null).await;
    assert_eq!(list["submissions"][0].to_string(), read["data"].to_string());

    for (form, id) in [(owner.form, Uuid::nil()), (Uuid::nil(), id)] {
        let path = format!("/api/forms/{form}/submissions/{id}");
        let (status, problem) = owner.api.send(Method::GET, &path, Some(&owner.key), &Value::Null).await;
        assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("not_found")), "{problem}");
    }
    let other = super::list::form(&owner.api, &owner.key, fields()).await;
    let path = format!("/api/forms/{other}/submissions/{id}");
    let (status, _) = owner.api.send(Method::DELETE, &path, Some(&owner.key), &Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "the submission belongs to another form");
    assert_eq!(owner.read(id).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_deleted_submission_frees_its_place_and_webhooks_receive_its_id() {
    let owner = Owner::new().await;
    let hook = json!({"url": "https://example.com/hook", "events": ["submission.deleted"]});
    let created = owner.api.send(Method::POST, "/api/webhooks", Some(&owner.key), &hook).await;
    assert_eq!(created.0, StatusCode::CREATED, "{}", created.1);
    let page = json!({"slug": "guests", "title": "P", "html": "x", "entryTemplate": "{{a}}"});
    let (_, page) = owner.api.send(Method::POST, "/api/pages", Some(&owner.key), &page).await;
    let edit = json!({"autoEntryPageId": page["id"], "maxSubmissions": 1, "uniqueBy": ["email"]});
    assert_eq!(owner.call(Method::PUT, "", &edit).await.0, StatusCode::OK);
    let upsert = json!({"externalId": "1", "payload": {"email": "a@b.co", "a": "x"}});
    let (status, stored) = owner.call(Method::PUT, "/submissions/upsert", &upsert).await;
    assert_eq!(status, StatusCode::CREATED, "{stored}");
    let id = stored["data"]["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(owner.call(Method::GET, "", &Value::Null).await.1["status"], "full");

    let (status, deleted) = owner.delete(id).await;
    assert_eq!((status, &deleted["deleted"]), (StatusCode::OK, &json!(true)), "{deleted}");
    assert_eq!(owner.read(id).await.0, StatusCode::NOT_FOUND);
    assert_eq!(owner.delete(id).await.0, StatusCode::NOT_FOUND);
    let (_, form) = owner.call(Method::GET, "", &Value::Null).await;
    assert_eq!((&form["status"], &form["submissionCount"]), (&json!("open"), &json!(0)));
    let entries = format!("/api/pages/{}/entries", page["id"].as_str().unwrap());
    let (_, entries) = owner.api.send(Method::GET, &entries, Some(&owner.key), &Value::Null).await;
    assert_eq!(entries["count"], 0, "{entries}");
    let event = format!(
        "do $$ begin
         assert (select count(*) from deliveries) = 1;
         assert (select payload #>> '{{data,submissionId}}' from deliveries) = '{id}';
         assert (select payload ->> 'type' from deliveries) = 'submission.deleted';
         end $$"
    );
    owner.api.execute(&event).await.unwrap();
    // Its unique value is free too.
    assert_eq!(owner.call(Method::PUT, "/submissions/upsert", &upsert).await.0, StatusCode::CREATED);

    let spam = insert_submission(&owner.api, owner.form, AT, "spam", &json!({"a": "x"})).await;
    assert_eq!(owner.delete(spam).await.0, StatusCode::OK);
    let (_, form) = owner.call(Method::GET, "", &Value::Null).await;
    assert_eq!(form["submissionCount"], 1, "spam did not count");
    owner.api.execute("do $$ begin assert (select count(*) from deliveries) = 1; end $$").await.unwrap();
}
