//! Writes of owners: they obey the form's rules, and their effects are delivered.

use std::sync::Arc;

use domain::plans::Plan;
use domain::scopes::ScopeSet;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use service::{Clock, Rng};
use store::submissions::{NewSubmission, SubmissionOutcome, WriteContext, insert_submission};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::harness::Api;

struct Fixture {
    api: Api,
    key: String,
    account_id: Uuid,
    form: Uuid,
    /// As many concurrent calls as connections, so that none times out even on a slow machine.
    permits: Semaphore,
}

impl Fixture {
    /// Creates an account with a form for an e-mail address and a note.
    async fn setup(settings: Value) -> Self {
        let api = Api::start(&[]).await;
        let (key, account_id) = api.trial_on(Plan::Pro).await;
        let mut form = json!({"name": "F", "fields": [
            {"name": "email", "label": "E-mail", "type": "email", "required": true},
            {"name": "note", "label": "Note", "type": "textarea", "maxLength": 100},
        ]});
        form.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let (status, created) = api.send(Method::POST, "/api/forms", Some(&key), &form).await;
        assert_eq!(status, StatusCode::CREATED, "{created}");
        let form = created["formId"].as_str().unwrap().parse().unwrap();
        Self { api, key, account_id, form, permits: Semaphore::new(5) }
    }

    async fn send(&self, method: Method, rest: &str, body: &Value) -> (u16, Value) {
        let path = format!("/api/forms/{}{rest}", self.form);
        let (status, response) = self.api.send(method, &path, Some(&self.key), body).await;
        (status.as_u16(), response)
    }

    async fn upsert(&self, external_id: &str, payload: Value) -> (u16, Value) {
        let _permit = self.permits.acquire().await.unwrap();
        let body = json!({"externalId": external_id, "payload": payload});
        self.send(Method::PUT, "/submissions/upsert", &body).await
    }

    async fn merge(&self, id: &str, payload: Value) -> (u16, Value) {
        self.send(Method::PATCH, &format!("/submissions/{id}"), &json!({"payload": payload})).await
    }

    async fn mark(&self, id: &str, status: &str) -> (u16, Value) {
        self.send(Method::POST, &format!("/submissions/{id}/status"), &json!({"status": status})).await
    }

    async fn edit(&self, edit: Value) {
        let (status, response) = self.send(Method::PUT, "", &edit).await;
        assert_eq!(status, 200, "{response}");
    }

    /// Submits as a visitor would, with the current form.
    async fn submit(&self, payload: Value, spam: &[&str]) -> (Uuid, SubmissionOutcome) {
        let _permit = self.permits.acquire().await.unwrap();
        let (now, rng) = (Clock::system().now(), Rng::system());
        let mut tx = self.api.begin().await;
        let form = store::forms::find_form(&mut tx, self.account_id, self.form).await.unwrap().unwrap();
        let new = NewSubmission {
            id: rng.uuid_v7(now),
            external_id: None,
            payload: payload.as_object().unwrap().clone(),
            extra: serde_json::Map::new(),
            spam_reasons: spam.iter().map(ToString::to_string).collect(),
        };
        let new_id = || rng.uuid_v7(now);
        let writer = WriteContext { now, traceparent: None, depth: 0, new_id: &new_id };
        store::forms::lock_form_shared(&mut tx, self.form).await.unwrap();
        let outcome = insert_submission(&mut tx, self.account_id, &form, &new, -1, &writer).await.unwrap();
        if matches!(outcome, SubmissionOutcome::Stored(_)) {
            store::commit(tx).await.unwrap();
        }
        (new.id, outcome)
    }

    async fn count(&self) -> i64 {
        self.send(Method::GET, "", &Value::Null).await.1["submissionCount"].as_i64().unwrap()
    }

    /// Creates a webhook for all events.
    async fn webhook(&self) -> String {
        let hook = json!({"url": "https://example.com/hook", "events": ["*"]});
        let (_, created) = self.api.send(Method::POST, "/api/webhooks", Some(&self.key), &hook).await;
        created["id"].as_str().unwrap().to_owned()
    }

    async fn delivered(&self, webhook: &str) -> Vec<String> {
        let path = format!("/api/webhooks/{webhook}/deliveries");
        let (_, log) = self.api.send(Method::GET, &path, Some(&self.key), &Value::Null).await;
        let events = log["deliveries"].as_array().unwrap().iter();
        let mut events: Vec<_> = events.map(|one| one["event"].as_str().unwrap().to_owned()).collect();
        events.reverse();
        events
    }
}

fn id_of(response: &Value) -> &str {
    response["data"]["id"].as_str().unwrap()
}

#[tokio::test]
async fn an_upsert_creates_a_submission_and_then_replaces_its_answers() {
    let fixture = Fixture::setup(json!({})).await;
    let webhook = fixture.webhook().await;
    let (status, created) =
        fixture.upsert("order-1", json!({"email": "a@b.co", "note": "x", "else": 1})).await;
    assert_eq!((status, &created["created"]), (201, &json!(true)), "{created}");
    let data = &created["data"];
    assert_eq!(data["payload"], json!({"email": "a@b.co", "note": "x"}), "unknown fields are left out");
    assert_eq!((&data["externalId"], &data["status"]), (&json!("order-1"), &json!("received")));
    assert_eq!(data["formId"], json!(fixture.form));
    let (status, replaced) = fixture.upsert("order-1", json!({"email": "c@d.co"})).await;
    assert_eq!((status, &replaced["created"], id_of(&replaced)), (200, &json!(false), id_of(&created)));
    assert_eq!(replaced["data"]["payload"], json!({"email": "c@d.co"}), "all answers are replaced");
    assert_eq!(replaced["data"]["createdAt"], data["createdAt"]);
    assert_eq!(fixture.count().await, 1);
    assert_eq!(fixture.delivered(&webhook).await, ["submission.created", "submission.updated"]);
    let (_, list) = fixture.send(Method::GET, "/submissions", &Value::Null).await;
    assert_eq!(list["submissions"][0], replaced["data"]);
}

#[tokio::test]
async fn a_merge_overwrites_only_given_answers() {
    let fixture = Fixture::setup(json!({})).await;
    let webhook = fixture.webhook().await;
    let (_, created) = fixture.upsert("1", json!({"email": "a@b.co", "note": "x"})).await;
    let id = id_of(&created);
    let (status, merged) = fixture.merge(id, json!({"note": "y"})).await;
    assert_eq!((status, &merged["data"]["payload"]), (200, &json!({"email": "a@b.co", "note": "y"})));
    let (_, merged) = fixture.merge(id, json!({"note": null, "other": "z"})).await;
    assert_eq!(merged["data"]["payload"], json!({"email": "a@b.co"}));
    for (payload, field) in [
        (json!({"email": null}), "payload.email"),
        (json!({"email": "invalid"}), "payload.email"),
        (json!({"note": "x".repeat(101)}), "payload.note"),
        (json!({}), "payload"),
    ] {
        let (status, problem) = fixture.merge(id, payload).await;
        assert_eq!((status, &problem["fieldErrors"][0]["field"]), (400, &json!(field)), "{problem}");
    }
    assert_eq!(fixture.delivered(&webhook).await.len(), 3, "rejected writes are not delivered");
    let path = format!("/submissions/{id}");
    let read = || fixture.send(Method::GET, &path, &Value::Null);
    let merge_since = async |note: &str, since: Value| {
        let body = json!({"payload": {"note": note}, "ifUnmodifiedSince": since});
        fixture.send(Method::PATCH, &path, &body).await
    };
    let since = read().await.1["data"]["updatedAt"].clone();
    assert_eq!(merge_since("first", since.clone()).await.0, 200);
    let (status, problem) = merge_since("second", since).await;
    assert_eq!((status, &problem["code"]), (409, &json!("stale_write")), "{problem}");
    let stored = read().await.1;
    assert_eq!(stored["data"]["payload"]["note"], "first", "a refused update changes nothing");
    assert_eq!(problem["updatedAt"], stored["data"]["updatedAt"]);
    assert_eq!(fixture.merge(&Uuid::nil().to_string(), json!({"note": "y"})).await.0, 404);
    let other = Fixture { form: Uuid::nil(), ..fixture };
    assert_eq!(other.merge(id, json!({"note": "y"})).await.0, 404, "the submission belongs to another form");
}

#[tokio::test]
async fn an_upsert_must_satisfy_the_form() {
    let fixture = Fixture::setup(json!({"uniqueBy": ["email"], "maxSubmissions": 2})).await;
    let (status, problem) = fixture.upsert("1", json!({"email": "invalid"})).await;
    assert_eq!((status, &problem["fieldErrors"][0]["field"]), (400, &json!("payload.email")));
    let (status, problem) = fixture.upsert(&"x".repeat(201), json!({"email": "a@b.co"})).await;
    assert_eq!((status, &problem["fieldErrors"][0]["field"]), (400, &json!("externalId")));
    assert_eq!(fixture.upsert("1", json!({"email": "a@b.co"})).await.0, 201);
    let (status, problem) = fixture.upsert("2", json!({"email": "A@b.co "})).await;
    assert_eq!((status, &problem["code"]), (409, &json!("duplicate_submission")), "{problem}");
    let (status, problem) = fixture.upsert("2", json!({"email": "A@B .co"})).await;
    assert_eq!((status, &problem["code"]), (400, &json!("validation_failed")), "an e-mail has no space");
    let (status, problem) = fixture.upsert("2", json!({"email": "A@B.co"})).await;
    assert_eq!((status, &problem["code"]), (409, &json!("duplicate_submission")), "{problem}");
    assert_eq!(
        fixture.upsert("1", json!({"email": "A@B.CO"})).await.0,
        200,
        "a submission is not a duplicate of itself"
    );
    assert_eq!(fixture.upsert("2", json!({"email": "c@d.co"})).await.0, 201);
    for (external_id, email, requested) in [("2", "a@b.co", 409), ("2", "e@f.co", 200), ("3", "g@h.co", 410)]
    {
        assert_eq!(
            fixture.upsert(external_id, json!({"email": email})).await.0,
            requested,
            "{external_id} {email}"
        );
    }
    let (_, first) = fixture.upsert("1", json!({"email": "a@b.co"})).await;
    assert_eq!(fixture.merge(id_of(&first), json!({"email": "e@f.co"})).await.0, 409);
    assert_eq!(
        fixture.upsert("1", json!({"email": "c@d.co"})).await.0,
        200,
        "a released unique value can be reused"
    );
    assert_eq!(fixture.count().await, 2);
}

#[tokio::test]
async fn the_free_plan_marks_spam_but_writes_no_submissions() {
    let fixture = Fixture::setup(json!({})).await;
    let (id, _) = fixture.submit(json!({"email": "a@b.co"}), &[]).await;
    fixture.api.set_plan(fixture.account_id, Plan::Free).await;
    let id = id.to_string();
    for (status, problem) in [
        fixture.upsert("1", json!({"email": "c@d.co"})).await,
        fixture.merge(&id, json!({"note": "x"})).await,
    ] {
        assert_eq!((status, &problem["code"]), (403, &json!("plan_restricted")));
    }
    assert_eq!(fixture.mark(&id, "spam").await.0, 200);
}

#[tokio::test]
async fn creating_by_upsert_requires_submissions_create() {
    let fixture = Fixture::setup(json!({})).await;
    assert_eq!(fixture.upsert("1", json!({"email": "a@b.co"})).await.0, 201);
    let scopes = ScopeSet::parse(["submissions:update"]).unwrap();
    let key = fixture.api.key_with(&fixture.key, scopes).await;
    let fixture = Fixture { key, ..fixture };
    assert_eq!(fixture.upsert("1", json!({"email": "c@d.co"})).await.0, 200);
    let (status, problem) = fixture.upsert("2", json!({"email": "c@d.co"})).await;
    assert_eq!((status, &problem["requiredScope"]), (403, &json!("submissions:create")));
}

#[tokio::test]
async fn an_unmarked_submission_counts_and_is_delivered() {
    let fixture = Fixture::setup(json!({"uniqueBy": ["email"]})).await;
    let webhook = fixture.webhook().await;
    let (spam, _) = fixture.submit(json!({"email": "a@b.co"}), &["honeypot"]).await;
    let spam = spam.to_string();
    let (status, found) = fixture.mark(&spam, "received").await;
    assert_eq!((status, &found["data"]["status"]), (200, &json!("received")), "{found}");
    assert_eq!(found["data"]["spamReasons"], Value::Null);
    assert_eq!(
        (fixture.count().await, fixture.delivered(&webhook).await),
        (1, vec!["submission.created".to_owned()])
    );
    assert_eq!(fixture.submit(json!({"email": "a@b.co"}), &[]).await.1, SubmissionOutcome::Duplicate);
    assert_eq!(fixture.mark(&spam, "archived").await.0, 200);
    assert_eq!(fixture.count().await, 1, "an archived submission counts");
    assert_eq!(fixture.submit(json!({"email": "a@b.co"}), &[]).await.1, SubmissionOutcome::Duplicate);
    assert_eq!(fixture.mark(&spam, "spam").await.0, 200);
    assert_eq!(fixture.count().await, 0);
    assert!(matches!(fixture.submit(json!({"email": "a@b.co"}), &[]).await.1, SubmissionOutcome::Stored(_)));
    let (status, problem) = fixture.mark(&spam, "received").await;
    assert_eq!(
        (status, &problem["code"]),
        (409, &json!("duplicate_submission")),
        "another submission has its unique value now"
    );
    fixture.edit(json!({"uniqueBy": null, "maxSubmissions": 1})).await;
    let (status, problem) = fixture.mark(&spam, "received").await;
    assert_eq!((status, &problem["code"]), (410, &json!("form_full")));
    fixture.edit(json!({"maxSubmissions": 2, "closesAt": "2020-01-01T00:00:00Z"})).await;
    assert_eq!(
        fixture.mark(&spam, "received").await.0,
        200,
        "the submission is older than the closing of the form"
    );
    assert_eq!(fixture.delivered(&webhook).await.len(), 3);
    assert_eq!(fixture.mark(&spam, "lost").await.0, 400);
}

#[tokio::test]
async fn marking_spam_removes_its_page_entry() {
    let fixture = Fixture::setup(json!({})).await;
    let page = json!({"slug": "guests", "title": "P", "html": "x", "entryTemplate": "{{note}}"});
    let (_, page) = fixture.api.send(Method::POST, "/api/pages", Some(&fixture.key), &page).await;
    fixture.edit(json!({"autoEntryPageId": page["id"]})).await;
    let entries = async || {
        let path = format!("/api/pages/{}/entries", page["id"].as_str().unwrap());
        fixture.api.send(Method::GET, &path, Some(&fixture.key), &Value::Null).await.1["count"].clone()
    };
    let (_, created) = fixture.upsert("1", json!({"email": "a@b.co", "note": "x"})).await;
    assert_eq!(fixture.upsert("2", json!({"email": "a@b.co", "note": "y"})).await.0, 201);
    assert_eq!(entries().await, 2);
    fixture.mark(id_of(&created), "spam").await;
    assert_eq!(entries().await, 1);
    fixture.mark(id_of(&created), "received").await;
    assert_eq!(entries().await, 2);
}

#[tokio::test]
async fn a_new_unique_rule_keeps_old_duplicates_and_blocks_new_ones() {
    let fixture = Fixture::setup(json!({})).await;
    let mut old = Vec::new();
    for note in ["1", "2", "3"] {
        old.push(fixture.submit(json!({"email": "a@b.co", "note": note}), &[]).await.0.to_string());
    }
    fixture.submit(json!({"email": "c@d.co"}), &["honeypot"]).await;
    fixture.edit(json!({"uniqueBy": ["email"]})).await;
    assert_eq!(fixture.count().await, 3);
    assert_eq!(fixture.submit(json!({"email": "a@b.co"}), &[]).await.1, SubmissionOutcome::Duplicate);
    assert!(
        matches!(fixture.submit(json!({"email": "c@d.co"}), &[]).await.1, SubmissionOutcome::Stored(_)),
        "spam blocks no other submission"
    );
    assert_eq!(
        fixture.merge(&old[1], json!({"note": "still here"})).await.0,
        200,
        "an unchanged value is accepted"
    );
    // They are deleted one by one, and the last one still blocks new ones.
    for id in &old[..2] {
        assert_eq!(fixture.mark(id, "spam").await.0, 200);
        assert_eq!(fixture.submit(json!({"email": "a@b.co"}), &[]).await.1, SubmissionOutcome::Duplicate);
    }
    assert_eq!(fixture.merge(&old[2], json!({"email": "e@f.co"})).await.0, 200);
    assert!(matches!(fixture.submit(json!({"email": "a@b.co"}), &[]).await.1, SubmissionOutcome::Stored(_)));
    let texts = json!([{"name": "email", "label": "E", "type": "text"}, {"name": "note", "label": "N", "type": "text"}]);
    fixture.edit(json!({"fields": texts})).await;
    assert!(
        matches!(fixture.submit(json!({"email": "A@b.co"}), &[]).await.1, SubmissionOutcome::Stored(_)),
        "the same digits as a text are a different value"
    );
    fixture.edit(json!({"uniqueBy": null})).await;
    assert!(matches!(fixture.submit(json!({"email": "a@b.co"}), &[]).await.1, SubmissionOutcome::Stored(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_applies_to_visitors_and_owners_together() {
    let fixture = Arc::new(Fixture::setup(json!({"maxSubmissions": 20})).await);
    let sent: JoinSet<bool> = (0..100)
        .map(|number| {
            let fixture = Arc::clone(&fixture);
            async move {
                let payload = json!({"email": "a@b.co"});
                if number % 2 == 0 {
                    let outcome = fixture.submit(payload, &[]).await.1;
                    assert!(
                        matches!(outcome, SubmissionOutcome::Stored(_) | SubmissionOutcome::Refused(_)),
                        "{outcome:?}"
                    );
                    matches!(outcome, SubmissionOutcome::Stored(_))
                } else {
                    let (status, response) = fixture.upsert(&number.to_string(), payload).await;
                    assert!([201, 410].contains(&status), "{response}");
                    status == 201
                }
            }
        })
        .collect();
    assert_eq!(sent.join_all().await.into_iter().filter(|is_stored| *is_stored).count(), 20);
    assert_eq!(fixture.count().await, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_concurrent_upserts_one_creates_the_submission() {
    let fixture = Arc::new(Fixture::setup(json!({"uniqueBy": ["email"]})).await);
    let sent: JoinSet<u16> = (0..50)
        .map(|number| {
            let fixture = Arc::clone(&fixture);
            async move {
                fixture.upsert("order-1", json!({"email": "a@b.co", "note": number.to_string()})).await.0
            }
        })
        .collect();
    let mut answers = sent.join_all().await;
    answers.sort_unstable();
    assert_eq!((answers[48], answers[49], fixture.count().await), (200, 201, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_added_under_load_applies_from_then_on() {
    let fixture = Arc::new(Fixture::setup(json!({})).await);
    let submitting: JoinSet<(u64, bool)> = (0..8)
        .flat_map(|_| 0..25_u64)
        .map(|number| {
            let fixture = Arc::clone(&fixture);
            async move {
                loop {
                    let payload = json!({"email": format!("{number}@b.co")});
                    match fixture.submit(payload, &[]).await.1 {
                        SubmissionOutcome::Changed => {}
                        outcome => return (number, matches!(outcome, SubmissionOutcome::Stored(_))),
                    }
                }
            }
        })
        .collect();
    fixture.edit(json!({"uniqueBy": ["email"]})).await;
    let stored = submitting.join_all().await.into_iter().filter(|(_, stored)| *stored).count();
    assert_eq!(fixture.count().await, i64::try_from(stored).unwrap());
    assert!(stored >= 25);
    for number in 0..25 {
        let outcome = fixture.submit(json!({"email": format!("{number}@B.co")}), &[]).await.1;
        assert_eq!(outcome, SubmissionOutcome::Duplicate, "{number}");
    }
}
