//! Lists of submissions: filters by text, time, answers and status, and pagination.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::Api;

/// Creates a form and returns its id.
pub(crate) async fn form(api: &Api, key: &str, fields: Value) -> Uuid {
    let body = json!({"name": "Contact", "fields": fields});
    let (status, response) = api.send(Method::POST, "/api/forms", Some(key), &body).await;
    assert_eq!(status, StatusCode::CREATED, "{response}");
    response["formId"].as_str().unwrap().parse().unwrap()
}

/// Inserts a submission received at this time and returns its id.
pub(crate) async fn insert_submission(
    api: &Api,
    form: Uuid,
    at: &str,
    status: &str,
    payload: &Value,
) -> Uuid {
    let id = Uuid::from_u128(api.next_number().into());
    let payload = payload.to_string().replace('\'', "''");
    let counts = i32::from(status != "spam");
    let statements = format!(
        "insert into submissions (id, account_id, form_id, payload, status, created_at, updated_at)
         select '{id}', account_id, id, '{payload}', '{status}', '{at}', '{at}' from forms where id = '{form}';
         update forms set submission_count = submission_count + {counts} where id = '{form}'"
    );
    api.execute(&statements).await.unwrap();
    id
}

pub(crate) fn fields() -> Value {
    json!([
        {"name": "email", "label": "E-mail", "type": "email"},
        {"name": "note", "label": "Note", "type": "textarea"},
        {"name": "age", "label": "Age", "type": "number"},
        {"name": "size", "label": "Size", "type": "select", "options": ["S", "L"]},
        {"name": "days", "label": "Days", "type": "multiselect", "options": ["Mon", "Tue"]},
    ])
}

/// The notes of the submissions that a query returns, in order.
async fn list_notes(api: &Api, key: &str, form: Uuid, query: &str) -> Vec<String> {
    let (status, list) = list(api, key, form, query).await;
    assert_eq!(status, StatusCode::OK, "{query}: {list}");
    let notes =
        list["submissions"].as_array().unwrap().iter().map(|one| one["payload"]["note"].as_str().unwrap());
    notes.map(str::to_owned).collect()
}

async fn list(api: &Api, key: &str, form: Uuid, query: &str) -> (StatusCode, Value) {
    api.send(Method::GET, &format!("/api/forms/{form}/submissions?{query}"), Some(key), &Value::Null).await
}

#[tokio::test]
async fn submissions_are_filtered_by_text_time_answers_and_status() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let form = form(&api, &key, fields()).await;
    let rows = [
        (
            "2027-01-30T10:00:00Z",
            "received",
            json!({"note": "red apples", "age": 3, "email": "ana@example.com"}),
        ),
        (
            "2027-01-31T23:59:59Z",
            "received",
            json!({"note": "green Apples", "age": 3.5, "days": ["Mon", "Tue"]}),
        ),
        ("2027-02-01T00:00:00Z", "received", json!({"note": "pears", "size": "L", "days": ["Tue"]})),
        ("2027-02-02T00:00:00Z", "spam", json!({"note": "cheap apples"})),
        ("2027-02-03T00:00:00Z", "archived", json!({"note": "old pears", "age": 3.0})),
    ];
    for (at, status, payload) in &rows {
        insert_submission(&api, form, at, status, payload).await;
    }
    let cases: [(&str, &[&str]); 32] = [
        ("", &["pears", "green Apples", "red apples"]),
        ("status=received", &["pears", "green Apples", "red apples"]),
        ("status=spam", &["cheap apples"]),
        ("status=archived", &["old pears"]),
        ("status=all", &["old pears", "cheap apples", "pears", "green Apples", "red apples"]),
        ("search=apples", &["green Apples", "red apples"]),
        ("search=APPLES%20red", &["red apples"]),
        ("search=%22red%20apples%22", &["red apples"]),
        ("search=apples%20-red", &["green Apples"]),
        ("search=red%20or%20pears", &["pears", "red apples"]),
        ("search=ana@example.com", &["red apples"]),
        ("search=nowhere", &[]),
        // The beginning of a word is enough.
        ("search=app", &["green Apples", "red apples"]),
        ("search=Gre%20AP", &["green Apples"]),
        ("search=ana@exam", &["red apples"]),
        ("search=ana", &["red apples"]),
        ("search=ples", &[]),
        ("search=gree%20or%20pea", &["pears", "green Apples"]),
        ("search=%26%20app", &["green Apples", "red apples"]),
        // Phrases and excluded words are whole.
        ("search=%22red%20app%22", &[]),
        ("search=app%20-re", &["green Apples", "red apples"]),
        ("search=%26%20%21", &[]),
        ("search=%27%29%3B%20drop%20table%20x%20%26%20%7C%20%21%20%3A%2A", &[]),
        ("from=2027-01-31", &["pears", "green Apples"]),
        ("to=2027-01-31", &["green Apples", "red apples"]),
        ("from=2027-01-31&to=2027-01-31", &["green Apples"]),
        ("to=2027-01-31T23:59:59Z", &["red apples"]),
        ("field=age&value=3&status=all", &["old pears", "red apples"]),
        ("field=days&value=Tue", &["pears", "green Apples"]),
        ("field=size&value=L", &["pears"]),
        ("field=nothing&value=L", &[]),
        ("search=apples&field=days&value=Mon&from=2027-01-01&to=2027-12-31", &["green Apples"]),
    ];
    for (query, notes) in cases {
        assert_eq!(list_notes(&api, &key, form, query).await, notes, "{query}");
    }
}

#[tokio::test]
async fn pagination_is_stable_among_equal_timestamps() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let form = form(&api, &key, fields()).await;
    for at in 0..7 {
        let note = json!({"note": format!("{at} word")});
        insert_submission(&api, form, "2027-01-30T10:00:00.123456Z", "received", &note).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let (_, part) = list(&api, &key, form, &format!("search=word&limit=3{cursor}")).await;
        seen.extend(part["submissions"].as_array().unwrap().iter().map(|one| one["payload"]["note"].clone()));
        let Some(next) = part["nextCursor"].as_str() else { break };
        assert_eq!(part["hasMore"], true);
        cursor = format!("&cursor={next}");
    }
    let all: Vec<Value> = (0..7).rev().map(|at| json!(format!("{at} word"))).collect();
    assert_eq!(seen, all);
}

#[tokio::test]
async fn an_invalid_query_is_rejected_and_names_the_parameter() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let form = form(&api, &key, fields()).await;
    let cases = [
        ("field=age".to_owned(), "value"),
        ("value=3".to_owned(), "field"),
        ("from=yesterday".to_owned(), "from"),
        ("to=2027-02-30".to_owned(), "to"),
        ("status=open".to_owned(), "status"),
        ("limit=0".to_owned(), "limit"),
        ("cursor=x".to_owned(), "cursor"),
        ("search=%00".to_owned(), "search"),
        (format!("search={}", "a".repeat(201)), "search"),
    ];
    for (query, field) in cases {
        let (status, problem) = list(&api, &key, form, &query).await;
        let named = &problem["fieldErrors"][0]["field"];
        assert_eq!((status, named), (StatusCode::BAD_REQUEST, &json!(field)), "{query}: {problem}");
    }
}
