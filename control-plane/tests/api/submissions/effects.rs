//! What a submission caused, and the numbers of submissions by status.

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::list::{form, insert_submission};
use crate::harness::Api;

struct Owner {
    api: Api,
    key: String,
    form: Uuid,
}

impl Owner {
    async fn new() -> Self {
        let api = Api::start(&[]).await;
        let (key, _) = api.trial_on(Plan::Scale).await;
        let fields = json!([{"name": "a", "label": "A", "type": "text"}]);
        let form = form(&api, &key, fields).await;
        Self { api, key, form }
    }

    async fn create(&self, path: &str, body: Value) -> Value {
        let (status, created) = self.api.send(Method::POST, path, Some(&self.key), &body).await;
        assert_eq!(status, StatusCode::CREATED, "{path}: {created}");
        created
    }

    async fn get(&self, key: &str, rest: &str) -> Value {
        let path = format!("/api/forms/{}/submissions{rest}", self.form);
        let (status, read) = self.api.send(Method::GET, &path, Some(key), &Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{read}");
        read
    }

    /// Creates a key that is restricted to the form.
    async fn key(&self, scopes: &[&str]) -> String {
        let body = json!({"label": "k", "scopes": scopes, "resourceIds": {"forms": [self.form]}});
        self.create("/api/keys", body).await["key"].as_str().unwrap().to_owned()
    }

    /// Stores a submission with an entry, a delivery and a run. Returns its id.
    async fn submission_with_effects(&self, page: &Value, automation: &Value) -> Uuid {
        let edit = json!({"autoEntryPageId": page["id"]});
        let path = format!("/api/forms/{}", self.form);
        assert_eq!(self.api.send(Method::PUT, &path, Some(&self.key), &edit).await.0, StatusCode::OK);
        let upsert = json!({"externalId": "1", "payload": {"a": "x"}});
        let path = format!("{path}/submissions/upsert");
        let (status, stored) = self.api.send(Method::PUT, &path, Some(&self.key), &upsert).await;
        assert_eq!(status, StatusCode::CREATED, "{stored}");
        let id: Uuid = stored["data"]["id"].as_str().unwrap().parse().unwrap();
        let run = format!(
            "insert into automation_runs (id, account_id, automation_id, definition_hash, trigger_type, trigger, status,
                                          submission_id, source_submission_id, created_at)
             select gen_random_uuid(), account_id, id, definition_hash, 'form_submission', '{{}}', 'success', '{id}', '{id}',
                    now() from automations where id = '{}'",
            automation["id"].as_str().unwrap()
        );
        self.api.execute(&run).await.unwrap();
        id
    }
}

#[tokio::test]
async fn a_submission_is_read_with_its_entry_its_deliveries_its_mail_and_its_runs() {
    let owner = Owner::new().await;
    let hook = owner.create("/api/webhooks", json!({"url": "https://example.com/hook"})).await;
    let page = json!({"slug": "guests", "title": "P", "html": "x", "entryTemplate": "{{a}}"});
    let page = owner.create("/api/pages", page).await;
    let steps = json!([{"id": "end", "type": "stop", "status": "success"}]);
    let automation = json!({"name": "A", "slug": "a", "trigger": {"type": "http"}, "steps": steps});
    let automation = owner.create("/api/automations", automation).await;
    let id = owner.submission_with_effects(&page, &automation).await;

    let effects = &owner.get(&owner.key, &format!("/{id}")).await["effects"];
    assert_eq!(effects["entry"]["pageId"], page["id"], "{effects}");
    assert_eq!(effects["entry"]["isArchived"], false);
    assert_eq!(effects["deliveries"][0]["webhookId"], hook["id"], "{effects}");
    assert_eq!(effects["deliveries"][0]["submissionId"], json!(id));
    assert_eq!(effects["runs"][0]["automationId"], automation["id"]);
    assert_eq!(
        (&effects["runs"][0]["status"], &effects["runs"][0]["isReplay"]),
        (&json!("success"), &json!(false))
    );
    assert!(effects["mail"].is_null(), "the form notifies no one: {effects}");

    let mail = format!(
        "insert into mails (kind, about, account_id, due_at, attempts)
         select 'submission', id, account_id, now(), 2 from submissions where id = '{id}'"
    );
    owner.api.execute(&mail).await.unwrap();
    let queued = &owner.get(&owner.key, &format!("/{id}")).await["effects"]["mail"];
    assert_eq!((&queued["status"], &queued["attempts"]), (&json!("queued"), &json!(2)), "{queued}");
    assert!(queued["nextAttemptAt"].is_string() && queued["finishedAt"].is_null(), "{queued}");

    let path = format!("/api/pages/{}", page["id"].as_str().unwrap());
    assert_eq!(owner.api.send(Method::DELETE, &path, Some(&owner.key), &Value::Null).await.0, StatusCode::OK);
    let entry = &owner.get(&owner.key, &format!("/{id}")).await["effects"]["entry"];
    assert_eq!((&entry["isArchived"], &entry["pageId"]), (&json!(true), &page["id"]), "{entry}");
}

#[tokio::test]
async fn a_key_for_one_form_sees_no_delivery_page_or_run_outside_it() {
    let owner = Owner::new().await;
    owner.create("/api/webhooks", json!({"url": "https://example.com/of-all-forms"})).await;
    let own = json!({"url": "https://example.com/own", "formIds": [owner.form]});
    let own = owner.create("/api/webhooks", own).await;
    let page = json!({"slug": "guests", "title": "P", "html": "x", "entryTemplate": "{{a}}"});
    let page = owner.create("/api/pages", page).await;
    let steps = json!([{"id": "end", "type": "stop", "status": "success"}]);
    let automation = json!({"name": "A", "slug": "a", "trigger": {"type": "http"}, "steps": steps});
    let automation = owner.create("/api/automations", automation).await;
    let id = owner.submission_with_effects(&page, &automation).await;

    let key = owner.key(&["*"]).await;
    let effects = &owner.get(&key, &format!("/{id}")).await["effects"];
    let deliveries = effects["deliveries"].as_array().unwrap();
    assert_eq!(deliveries.len(), 1, "the other webhook receives events of every form: {effects}");
    assert_eq!(deliveries[0]["webhookId"], own["id"]);

    let key = owner.key(&["submissions:read"]).await;
    let effects = &owner.get(&key, &format!("/{id}")).await["effects"];
    for part in ["entry", "deliveries", "runs"] {
        assert!(effects[part].is_null(), "{part} needs a scope of its own: {effects}");
    }

    let other = owner.create("/api/pages", json!({"slug": "other", "title": "P", "html": "x"})).await;
    let body = json!({"label": "k", "resourceIds": {"forms": [owner.form], "pages": [other["id"]]}});
    let key = owner.create("/api/keys", body).await;
    let effects = &owner.get(key["key"].as_str().unwrap(), &format!("/{id}")).await["effects"];
    assert!(effects["entry"].is_null(), "it is on another page: {effects}");
    assert_eq!(effects["runs"][0]["automationId"], automation["id"], "{effects}");
}

#[tokio::test]
async fn the_list_counts_a_forms_submissions_by_status_on_its_first_page() {
    let owner = Owner::new().await;
    for (number, status) in
        ["received", "spam", "archived", "received", "received", "spam"].iter().enumerate()
    {
        let at = format!("2027-01-30T10:00:0{number}Z");
        insert_submission(&owner.api, owner.form, &at, status, &json!({"a": "x"})).await;
    }
    let expected = json!({"received": 3, "spam": 2, "archived": 1});
    let first = owner.get(&owner.key, "?limit=2&search=nothing").await;
    assert_eq!((&first["counts"], &first["submissions"]), (&expected, &json!([])), "whatever the filters");
    let first = owner.get(&owner.key, "?limit=2").await;
    assert_eq!(first["counts"], expected);
    let next =
        owner.get(&owner.key, &format!("?limit=2&cursor={}", first["nextCursor"].as_str().unwrap())).await;
    assert!(next["counts"].is_null(), "{next}");
}
