//! Public results: exact counts of choices, numbers only as aggregates, and no free text.

use contract::Change;
use futures::future::join_all;
use http::{Method, StatusCode};
use sandbox::test::until;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fixtures::{Account, submit_path};
use crate::harness::Edge;

fn fields() -> Value {
    json!([
        {"name": "vote", "label": "Vote", "type": "select", "options": ["A", "B"]},
        {"name": "many", "label": "Many", "type": "multiselect", "options": ["x", "y"]},
        {"name": "box", "label": "Box", "type": "checkbox"},
        {"name": "age", "label": "Age", "type": "number"},
        {"name": "said", "label": "Said", "type": "text"},
        {"name": "long", "label": "Long", "type": "textarea"},
        {"name": "mail", "label": "Mail", "type": "email"},
        {"name": "call", "label": "Call", "type": "tel"},
        {"name": "site", "label": "Site", "type": "url"},
        {"name": "day", "label": "Day", "type": "date"},
        {"name": "hid", "label": "Hid", "type": "hidden"},
    ])
}

async fn public_form(account: &Account<'_>) -> Uuid {
    account.form_with(fields(), |form| form.public_results = true).await
}

fn path(form: Uuid) -> String {
    format!("/api/forms/{form}/results")
}

impl Edge {
    async fn results(&self, form: Uuid) -> Value {
        let response = self.visitor.get("localhost", &path(form)).await;
        assert_eq!(response.status, StatusCode::OK);
        assert_eq!(response.header("access-control-allow-origin"), "*");
        response.json()
    }
}

#[tokio::test]
async fn results_count_choices_and_hide_free_text() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = public_form(&account).await;
    let answers = json!({
        "vote": "B", "many": ["x", "y"], "box": true, "age": 33, "said": "SECRET", "long": "SECRET",
        "mail": "secret@example.com", "call": "+49 555 0123", "site": "https://secret.test", "day": "1999-12-31",
        "hid": "SECRET",
    });
    assert_eq!(edge.visitor.post(&submit_path(form), &answers).await.status, StatusCode::CREATED);
    let results = edge.results(form).await;
    let count = |value: &str, count: i64| json!({"value": value, "count": count});
    let expected = json!({
        "formId": form, "name": "Contact", "submissions": 1,
        "fields": [
            {"name": "vote", "label": "Vote", "type": "select", "options": [count("A", 0), count("B", 1)]},
            {"name": "many", "label": "Many", "type": "multiselect", "options": [count("x", 1), count("y", 1)]},
            {"name": "box", "label": "Box", "type": "checkbox", "options": [count("true", 1), count("false", 0)]},
            {"name": "age", "label": "Age", "type": "number"},
        ],
    });
    assert_eq!(results, expected);
}

#[tokio::test]
async fn results_count_concurrent_votes_and_exclude_spam() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = public_form(&account).await;
    let vote = async |at: i32| {
        let answers = json!({"vote": if at % 4 == 0 { "A" } else { "B" }, "age": at});
        assert_eq!(edge.visitor.post(&submit_path(form), &answers).await.status, StatusCode::CREATED);
        edge.results(form).await
    };
    join_all((0..40).map(vote)).await;
    // Excludes values stored when the field was still a text field, and spam.
    edge.run(&format!(
        "insert into submissions (id, account_id, form_id, payload, status, created_at, updated_at)
         select gen_random_uuid(), account_id, id, payload, status, now(), now() from forms,
           (values ('{{\"vote\": \"a free text\", \"age\": \"old\"}}'::jsonb, 'received'), ('{{\"vote\": \"A\", \"age\": 900}}', 'spam'))
           as given (payload, status)
         where id = '{form}'"
    ))
    .await;
    until(async || edge.results(form).await["submissions"] == 41).await;
    let results = edge.results(form).await;
    assert_eq!(
        results["fields"][0]["options"],
        json!([{"value": "A", "count": 10}, {"value": "B", "count": 30}])
    );
    assert_eq!((&results["fields"][3]["count"], &results["fields"][3]["mean"]), (&json!(40), &json!(19.5)));
    assert!(!results.to_string().contains("free text"));
}

#[tokio::test]
async fn results_are_refused_as_soon_as_they_are_private() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let account = edge.account("quiet-otter").await;
    let form = public_form(&account).await;
    edge.results(form).await;
    edge.run(&format!("update forms set public_results = false where id = '{form}'")).await;
    edge.publish_change(Change::Form { form_id: form }).await;
    until(async || edge.visitor.get("localhost", &path(form)).await.status == StatusCode::FORBIDDEN).await;
    edge.visitor.get("localhost", &path(form)).await.problem(403, "forbidden");
    edge.visitor.get("localhost", &path(Uuid::from_u128(1))).await.problem(404, "not_found");
    edge.visitor.get("localhost", "/api/forms/nonsense/results").await.problem(404, "not_found");
}

#[tokio::test]
async fn an_owner_with_a_key_gets_the_results_from_the_control_plane() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let private = account.form_with(fields(), |_| {}).await;
    let get = async |form: Uuid, headers: &[(&str, &str)]| {
        edge.visitor.send(Method::GET, "localhost", &path(form), headers, "").await
    };
    assert_eq!(get(private, &[]).await.status, StatusCode::FORBIDDEN);
    assert!(edge.control_plane.all().is_empty(), "a visitor's request is not forwarded");
    for header in [("authorization", "Bearer st_live_x"), ("cookie", "session=x")] {
        assert_eq!(get(private, &[header]).await.status, StatusCode::OK);
        let forwarded = edge.control_plane.last();
        assert_eq!(forwarded.target, format!("/api/forms/{private}/submissions/results"));
        assert_eq!(forwarded.header(header.0), header.1);
    }
}
