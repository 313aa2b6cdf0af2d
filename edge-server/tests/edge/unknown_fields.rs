//! Answers to fields that a form does not have: ignored and named, stored under `extra`, or refused.

use domain::forms::UnknownFields;
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use store::forms::Form;
use uuid::Uuid;

use crate::client::{NAVIGATION, TestResponse};
use crate::fixtures::{Account, one_text_field, submit_path};
use crate::harness::Edge;

async fn form(account: &Account<'_>, rule: UnknownFields, shape: impl FnOnce(&mut Form)) -> Uuid {
    let set = |form: &mut Form| {
        form.unknown_fields = rule;
        shape(form);
    };
    account.form_with(one_text_field(), set).await
}

async fn post(edge: &Edge, form: Uuid, kind: &str, body: &str, more: &[(&str, &str)]) -> TestResponse {
    let headers = [&[("content-type", kind)], more].concat();
    edge.visitor.send(Method::POST, "localhost", &submit_path(form), &headers, body.to_owned()).await
}

/// The same answers in the three kinds of body. The multipart body has a file for an unknown field too.
fn bodies() -> [(&'static str, String); 3] {
    let part = |name: &str, value: &str| {
        format!("--xx\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let file =
        "--xx\r\ncontent-disposition: form-data; name=\"cv\"; filename=\"cv.pdf\"\r\n\r\n%PDF\r\n--xx--\r\n";
    [
        (
            "application/json",
            json!({"a": "x", "utm": "mail", "form.token": "", "form.lang": "de"}).to_string(),
        ),
        ("application/x-www-form-urlencoded", "a=x&utm=mail&form.lang=de&contact.website=".to_owned()),
        (
            "multipart/form-data; boundary=xx",
            part("a", "x") + &part("utm", "mail") + &part("form.embed", "1") + file,
        ),
    ]
}

#[tokio::test]
async fn ignored_fields_are_named_in_the_answer_and_in_its_replay() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = form(&account, UnknownFields::Ignore, |_| {}).await;
    for (kind, body) in bodies() {
        let expected = if kind.starts_with("multipart") { json!(["utm", "cv"]) } else { json!(["utm"]) };
        assert_eq!(post(&edge, form, kind, &body, &[]).await.json()["ignoredFields"], expected, "{kind}");
        let key = [("idempotency-key", kind.split('/').nth(1).unwrap().split(';').next().unwrap())];
        let first = post(&edge, form, kind, &body, &key).await;
        let replayed = post(&edge, form, kind, &body, &key).await;
        assert_eq!((replayed.status, replayed.header("idempotent-replayed")), (StatusCode::CREATED, "true"));
        assert_eq!(replayed.json(), first.json());
        assert_eq!(replayed.json()["ignoredFields"], expected);
    }
    let known = post(&edge, form, "application/json", "{\"a\":\"x\"}", &[]).await;
    assert!(known.json().get("ignoredFields").is_none(), "{}", known.text());
    let mut many: Map<String, Value> = (0..30).map(|at| (format!("{at}").repeat(99), json!(at))).collect();
    many.insert("a".to_owned(), json!("x"));
    let many = post(&edge, form, "application/json", &Value::Object(many).to_string(), &[]).await;
    let named: Vec<String> = serde_json::from_value(many.json()["ignoredFields"].clone()).unwrap();
    assert!((10..=20).contains(&named.len()) && named.iter().all(|name| name.len() == 64), "{named:?}");
    assert_eq!(account.submissions(form).await.len(), 8);
}

#[tokio::test]
async fn a_form_stores_unknown_fields_beside_the_payload_by_every_way() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    account.webhook(None, &[]).await;
    let shapes: [fn(&mut Form); 3] =
        [|_| {}, |form| form.max_submissions = Some(9), |form| form.unique_by = Some(vec!["utm".to_owned()])];
    for shape in shapes {
        let form = form(&account, UnknownFields::Store, shape).await;
        for (kind, body) in bodies() {
            let sent = post(&edge, form, kind, &body, &[]).await;
            assert_eq!(sent.status, StatusCode::CREATED, "{}", sent.text());
            let file = kind.starts_with("multipart").then(|| json!(["cv"]));
            assert_eq!(sent.json().get("ignoredFields"), file.as_ref());
        }
        let none = edge.visitor.post(&submit_path(form), &json!({"a": "x"})).await;
        assert_eq!(none.status, StatusCode::CREATED, "{}", none.text());
        let robot = "a=x&utm=spam&contact.website=x";
        post(&edge, form, "application/x-www-form-urlencoded", robot, &[]).await;
        assert_eq!(account.submissions(form).await, vec![json!({"a": "x"}); 5]);
        edge.run(&format!(
            "do $$ begin
                 assert (select count(*) = 3 from submissions where form_id = '{form}' and extra = '{{\"utm\": \"mail\"}}');
                 assert (select count(*) = 1 from submissions where form_id = '{form}' and extra is null);
                 assert (select count(*) = 1 from submissions
                         where form_id = '{form}' and status = 'spam' and extra = '{{\"utm\": \"spam\"}}');
             end $$"
        ))
        .await;
    }
    edge.run(
        "do $$ begin
             assert (select count(*) = 12 from deliveries);
             assert not exists (select from deliveries where payload::text like '%utm%');
         end $$",
    )
    .await;
}

#[tokio::test]
async fn the_twenty_first_stored_field_and_every_refused_one_is_an_error() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let stores = form(&account, UnknownFields::Store, |_| {}).await;
    let of = |count: usize| {
        let extra = (0..count).map(|at| (format!("x{at:02}"), json!("y")));
        Value::Object(extra.chain([("a".to_owned(), json!("x"))]).collect())
    };
    assert_eq!(edge.visitor.post(&submit_path(stores), &of(20)).await.status, StatusCode::CREATED);
    let refused = edge.visitor.post(&submit_path(stores), &of(21)).await;
    let problem = refused.problem(400, "validation_failed");
    assert_eq!(
        (&problem["fieldErrors"][0]["field"], &problem["fieldErrors"][1]),
        (&json!("x20"), &Value::Null)
    );
    assert_eq!(refused.header("access-control-allow-origin"), "*");

    let refuses = form(&account, UnknownFields::Refuse, |_| {}).await;
    for (kind, body) in bodies() {
        let problem = post(&edge, refuses, kind, &body, &[]).await.problem(400, "validation_failed");
        let errors = problem["fieldErrors"].as_array().unwrap();
        let named: Vec<_> = errors.iter().map(|error| (&error["field"], &error["code"])).collect();
        let code = json!("unknown_field");
        assert_eq!(named[0], (&json!("utm"), &code), "{kind}");
        assert_eq!(named.get(1).copied(), kind.starts_with("multipart").then_some((&json!("cv"), &code)));
    }
    let both = edge.visitor.post(&submit_path(refuses), &json!({"a": 7, "b": 8})).await;
    let errors = both.problem(400, "validation_failed")["fieldErrors"].clone();
    assert_eq!((&errors[0]["field"], &errors[1]["field"]), (&json!("a"), &json!("b")), "all at once");
    let browser = edge.visitor.post_form(&submit_path(refuses), &[("a", "x"), ("b", "y")]).await;
    assert_eq!(browser.status, StatusCode::BAD_REQUEST);
    let page = browser.text();
    assert!(page.contains("<h1") && page.contains("name=\"a\"") && page.contains("value=\"x\""), "{page}");
    let summary = "<li><bdi>b</bdi>: b is not a field of this form</li>";
    assert!(page.contains(summary), "{page}");
    let page = [("a", "x"), ("form.embed", "1"), ("contact.website", ""), ("form.lang", "en")];
    assert_eq!(edge.visitor.post_form(&submit_path(refuses), &page).await.status, StatusCode::SEE_OTHER);
    assert_eq!((account.count(stores).await, account.count(refuses).await), (1, 1));
}

#[tokio::test]
async fn a_file_for_a_text_field_is_an_error_unless_none_was_chosen() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = form(&account, UnknownFields::Ignore, |_| {}).await;
    let kind = "multipart/form-data; boundary=xx";
    let part = |more: &str, value: &str| {
        format!("--xx\r\ncontent-disposition: form-data; name=\"a\"{more}\r\n\r\n{value}\r\n")
    };
    let file = part("", "Ada") + &part("; filename=\"a.txt\"", "Grace") + "--xx--\r\n";
    let problem = post(&edge, form, kind, &file, &[]).await.problem(400, "validation_failed");
    let errors = &problem["fieldErrors"];
    assert_eq!((&errors[0]["field"], &errors[1]), (&json!("a"), &Value::Null), "{problem}");
    let message = errors[0]["message"].as_str().unwrap();
    assert!(message.ends_with(" takes text, not a file"), "{message}");
    let page = post(&edge, form, kind, &file, &[NAVIGATION]).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    assert!(page.text().contains(message), "{}", page.text());
    let none = part("", "Ada") + &part("; filename=\"\"", "") + "--xx--\r\n";
    assert_eq!(post(&edge, form, kind, &none, &[]).await.status, StatusCode::CREATED);
    assert_eq!(account.submissions(form).await, [json!({"a": "Ada"})]);
}
