//! Files in owners' submissions: ids of files uploaded for exactly this field of this account.

use domain::plans::Plan;
use http::Method;
use serde_json::{Value, json};
use service::Rng;
use uuid::Uuid;

use crate::harness::Api;

struct Fixture {
    api: Api,
    key: String,
    account_id: Uuid,
    form: Uuid,
}

impl Fixture {
    async fn setup() -> Self {
        let api = Api::start(&[]).await;
        let (key, account_id) = api.trial_on(Plan::Pro).await;
        let form = form(&api, &key).await;
        Self { api, key, account_id, form }
    }

    /// Inserts an uploaded file of 1,000 bytes without a submission.
    async fn file(&self, form: Uuid, field: &str) -> Uuid {
        let id = Uuid::from_bytes(Rng::system().bytes());
        let account_id = self.account_id;
        let statement = format!(
            "insert into blobs (id, account_id, sha256, size_bytes)
             values ('{id}', '{account_id}', sha256('{id}'), 1000);
             insert into form_files (id, account_id, form_id, field, filename, content_type, size_bytes, visitor, blob_id,
                                     created_at)
             values ('{id}', '{account_id}', '{form}', '{field}', 'cv.pdf', 'application/pdf', 1000, '', '{id}', now())"
        );
        self.api.execute(&statement).await.unwrap();
        id
    }

    async fn upsert(&self, external_id: &str, payload: Value) -> (u16, Value) {
        let body = json!({"externalId": external_id, "payload": payload});
        self.send(Method::PUT, "upsert", &body).await
    }

    async fn merge(&self, id: &Value, payload: Value) -> (u16, Value) {
        self.send(Method::PATCH, id.as_str().unwrap(), &json!({"payload": payload})).await
    }

    async fn send(&self, method: Method, rest: &str, body: &Value) -> (u16, Value) {
        let path = format!("/api/forms/{}/submissions/{rest}", self.form);
        let (status, response) = self.api.send(method, &path, Some(&self.key), body).await;
        (status.as_u16(), response)
    }

    async fn stored_bytes(&self) -> i64 {
        let mut tx = self.api.begin().await;
        store::usage::find_usage(&mut tx, self.account_id).await.unwrap().unwrap().storage_bytes
    }
}

async fn form(api: &Api, key: &str) -> Uuid {
    let form = json!({"name": "F", "fields": [
        {"name": "name", "label": "Name", "type": "text"},
        {"name": "cv", "label": "CV", "type": "file"},
        {"name": "photo", "label": "Photo", "type": "file"},
    ]});
    let (_, created) = api.send(Method::POST, "/api/forms", Some(key), &form).await;
    created["formId"].as_str().unwrap().parse().unwrap()
}

/// The file ids of a submission.
fn files(response: &Value) -> Vec<&str> {
    response["data"]["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["objectId"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn files_belong_to_their_submission_until_they_are_replaced() {
    let fixture = Fixture::setup().await;
    let (first, second) = (fixture.file(fixture.form, "cv").await, fixture.file(fixture.form, "cv").await);
    let (status, created) = fixture.upsert("a", json!({"name": "Ana", "cv": first})).await;
    assert_eq!(status, 201, "{created}");
    assert_eq!((files(&created), fixture.stored_bytes().await), (vec![first.to_string().as_str()], 1_000));
    let id = &created["data"]["id"];

    let (status, same) = fixture.upsert("a", json!({"name": "Bea", "cv": first})).await;
    assert_eq!((status, files(&same).len(), fixture.stored_bytes().await), (200, 1, 1_000), "{same}");
    let (status, other) = fixture.merge(id, json!({"cv": second})).await;
    assert_eq!((status, files(&other)), (200, vec![second.to_string().as_str()]), "{other}");
    assert_eq!(fixture.stored_bytes().await, 1_000, "the storage of the first file is released");
    let (status, none) = fixture.merge(id, json!({"cv": null})).await;
    assert_eq!((status, files(&none).len(), fixture.stored_bytes().await), (200, 0, 0), "{none}");
}

#[tokio::test]
async fn an_invalid_file_id_is_rejected_without_side_effects() {
    let fixture = Fixture::setup().await;
    let other_form = form(&fixture.api, &fixture.key).await;
    let taken = fixture.file(fixture.form, "cv").await;
    assert_eq!(fixture.upsert("owner", json!({"cv": taken})).await.0, 201);
    let (_, created) = fixture.upsert("a", json!({"name": "Ana"})).await;
    let id = &created["data"]["id"];
    for wrong in [
        json!(Uuid::from_bytes(Rng::system().bytes())),
        json!("cv.pdf"),
        json!(taken),
        json!(fixture.file(fixture.form, "photo").await),
        json!(fixture.file(other_form, "cv").await),
    ] {
        let payload = json!({"name": "changed", "cv": wrong});
        for (status, problem) in [
            fixture.upsert("a", payload.clone()).await,
            fixture.upsert("new", payload.clone()).await,
            fixture.merge(id, payload).await,
        ] {
            assert_eq!(status, 400, "{problem}");
            assert_eq!(problem["fieldErrors"][0]["field"], "payload.cv", "{problem}");
        }
    }
    let (_, listed) = fixture
        .api
        .send(
            Method::GET,
            &format!("/api/forms/{}/submissions", fixture.form),
            Some(&fixture.key),
            &Value::Null,
        )
        .await;
    assert_eq!(listed["submissions"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(listed["submissions"][0]["payload"], json!({"name": "Ana"}));
    assert_eq!(fixture.stored_bytes().await, 1_000);
}

#[tokio::test]
async fn the_answer_of_a_deleted_file_may_stay() {
    let fixture = Fixture::setup().await;
    let file = fixture.file(fixture.form, "cv").await;
    let (_, created) = fixture.upsert("a", json!({"name": "Ana", "cv": file})).await;
    fixture.api.execute("delete from form_files").await.unwrap();
    let (status, edited) = fixture.merge(&created["data"]["id"], json!({"name": "Bea"})).await;
    assert_eq!((status, &edited["data"]["payload"]["cv"]), (200, &json!(file)), "{edited}");
}

#[tokio::test]
async fn an_account_without_storage_links_no_files() {
    let fixture = Fixture::setup().await;
    let file = fixture.file(fixture.form, "cv").await;
    let limit = Plan::Pro.limits().storage_bytes;
    fixture.api.execute(&format!("update usage set storage_bytes = {limit} - 999")).await.unwrap();
    let (status, problem) = fixture.upsert("a", json!({"cv": file})).await;
    assert_eq!((status, &problem["code"]), (403, &json!("quota_exceeded")), "{problem}");
}

#[tokio::test]
async fn received_spam_gets_the_files_that_were_not_kept_with_it() {
    let fixture = Fixture::setup().await;
    let file = fixture.file(fixture.form, "cv").await;
    let id = Uuid::from_bytes(Rng::system().bytes());
    let spam = format!(
        "insert into submissions (id, account_id, form_id, payload, status, spam_reasons, created_at, updated_at)
         values ('{id}', '{}', '{}', '{{\"cv\": \"{file}\"}}', 'spam', '{{honeypot}}', now(), now())",
        fixture.account_id, fixture.form
    );
    fixture.api.execute(&spam).await.unwrap();
    let status = &json!({"status": "received"});
    let (code, received) = fixture.send(Method::POST, &format!("{id}/status"), status).await;
    assert_eq!((code, files(&received)), (200, vec![file.to_string().as_str()]), "{received}");
    assert_eq!(fixture.stored_bytes().await, 1_000);
}
