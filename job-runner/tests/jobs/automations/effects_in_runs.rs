//! Steps that write to the account's pages, forms and webhooks, in runs of a job-runner.

use domain::webhooks::AUTOMATION_MESSAGE;
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use store::forms::Form;
use uuid::Uuid;

use super::pairs;
use crate::fixture::account::{Account, SECRET, new_id, now};
use crate::fixture::receiver::{Receiver, status};

impl Account {
    /// Creates a form that takes each address once.
    async fn form_of_unique_addresses(&self) -> Uuid {
        let fields = json!([
            {"name": "mail", "label": "Mail", "type": "email", "required": true},
            {"name": "age", "label": "Age", "type": "number"},
        ]);
        let mut form =
            Form::new(new_id(), "Leads".to_owned(), serde_json::from_value(fields).unwrap(), now());
        form.unique_by = Some(vec!["mail".to_owned()]);
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::forms::insert_form(&mut conn, self.id, &form).await.unwrap();
        form.id
    }

    /// Returns the result of a query for one JSON value.
    async fn json(&self, query: &'static str) -> Value {
        sqlx::query_scalar(query).fetch_one(&self.database.db).await.unwrap()
    }

    /// Creates a webhook that gets messages of automations alone: it subscribes to no event of the form.
    async fn webhook_for_messages(&self, url: &str) -> Uuid {
        self.webhook_with(url, |webhook| webhook.events = vec!["form.closed".to_owned()]).await
    }
}

#[tokio::test]
async fn a_run_creates_finds_and_deletes_an_entry_submits_a_form_and_sends_a_webhook() {
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
    let (page, form) = (account.entry_page().await, account.form_of_unique_addresses().await);
    let webhook = account.webhook_for_messages(&receiver.url).await;
    let automation = account
        .automation(json!([
            {"id": "entry", "type": "create_entry", "pageId": page, "data": {"mail": "{{ trigger.payload.mail }}"}},
            {"id": "other", "type": "create_entry", "pageId": page, "data": {"mail": "other@b.co"}},
            {"id": "found", "type": "find", "in": "entries", "pageId": page,
             "where": {"mail": "{{ trigger.payload.mail }}"}},
            {"id": "gone", "type": "delete_entry", "pageId": page, "entryId": "{{ steps.found.items[0].id }}"},
            {"id": "submit", "type": "create_submission", "formId": form,
             "payload": {"mail": "{{ trigger.payload.mail }}", "age": "{{ trigger.payload.age }}", "unknown": "x"}},
            {"id": "tell", "type": "send_webhook", "webhookId": webhook,
             "payload": {"submission": "{{ steps.submit.submissionId }}", "found": "{{ steps.found.count }}"}},
        ]))
        .await;
    let _running = account.run_automations(&[]).await;
    let id = automation.start(json!({"mail": "a@b.co", "age": 30})).await;
    automation.run_when(id, "success").await;
    let steps = automation.steps(id).await;
    let order: Vec<_> = steps.iter().map(|step| (step.path.as_str(), step.status.as_str())).collect();
    let expected = ["entry", "other", "found", "gone", "submit", "tell"].map(|path| (path, "success"));
    assert_eq!(order, expected);
    assert_eq!(steps[2].output["items"][0]["id"], steps[0].output["id"]);
    assert_eq!(steps[3].output, json!({"deleted": true}));
    let entries = account.json("select jsonb_agg(data) from page_entries").await;
    assert_eq!(entries, json!([{"mail": "other@b.co"}]), "the entry that was found is gone");
    let logged = account
        .json(
            "select jsonb_agg(jsonb_build_array(actor_type, actor_id, operation, resource_id)) from activity",
        )
        .await;
    assert_eq!(
        logged,
        json!([["automation", automation.id, "entries.delete", page]]),
        "new data is no change"
    );
    let submission =
        account.json("select jsonb_build_array(id, form_id, payload, status) from submissions").await;
    let submission_id = &steps[4].output["submissionId"];
    assert_eq!(submission, json!([submission_id, form, {"mail": "a@b.co", "age": 30}, "received"]));

    let delivery = account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    assert_eq!((delivery.event.as_str(), delivery.attempts), (AUTOMATION_MESSAGE, 1));
    assert_eq!(steps[5].output, json!({"deliveryId": delivery.id}));
    let received = receiver.received();
    assert_eq!(received.len(), 1);
    Webhook::new(SECRET).unwrap().verify(&received[0].body, &received[0].headers).unwrap();
    assert_eq!(received[0].header("webhook-id"), delivery.id.to_string());
    let data = &received[0].json()["data"];
    assert_eq!((&data["automationId"], &data["runId"]), (&json!(automation.id), &json!(id)));
    assert_eq!(data["payload"], json!({"submission": submission_id, "found": 1}));

    // The form's own rules hold: this address is taken, and the next one is none.
    for (mail, reason) in [("a@b.co", "the same mail"), ("no address", "Mail")] {
        let id = automation.start(json!({"mail": mail, "age": 30})).await;
        let run = automation.run_when(id, "error").await;
        assert_eq!(run.error_path.as_deref(), Some("submit"));
        assert!(run.error.as_ref().unwrap().contains(reason), "{:?}", run.error);
        let begun = automation.outline(id).await;
        assert_eq!(begun[3..], pairs(&[("gone", "success"), ("submit", "error")]));
    }
    assert_eq!(account.number("select count(*) from submissions").await, 1);
    assert_eq!(account.deliveries(webhook).await.len(), 1, "nothing after the failed step");
}

#[tokio::test]
async fn a_message_that_the_receiver_refuses_is_delivered_by_its_second_attempt() {
    let account = Account::new().await;
    let receiver = Receiver::responding([status(500)]).await;
    let webhook = account.webhook_for_messages(&receiver.url).await;
    let steps =
        json!([{"id": "tell", "type": "send_webhook", "webhookId": webhook, "payload": {"text": "Hi"}}]);
    let automation = account.automation(steps).await;
    let _running = account.run_automations(&["webhooks.retry_schedule=[\"0s\",\"10ms\"]"]).await;
    let id = automation.start(Value::Null).await;
    // The run does not wait for the delivery.
    automation.run_when(id, "success").await;
    let delivery = account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    assert_eq!((delivery.attempts, delivery.status_code), (2, Some(200)));
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    for one in &received {
        Webhook::new(SECRET).unwrap().verify(&one.body, &one.headers).unwrap();
        assert_eq!(one.header("webhook-id"), delivery.id.to_string());
        assert_eq!(one.body, received[0].body);
    }
}
