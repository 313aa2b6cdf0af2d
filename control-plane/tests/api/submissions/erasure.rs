//! Erasure: a person's submissions occur nowhere any more, and nothing else is missing.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::Api;
use crate::submissions::list::insert_submission;

/// A text contained in everything derived from the submissions to erase.
const MARKER: &str = "a-request-for-erasure";

/// Fails if the text occurs in any row of any table, whatever the column types.
const NOWHERE: &str = "do $$ declare place record; found boolean; begin
    for place in select c.oid::regclass as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
                 where c.relkind = 'r' and n.nspname = current_schema() loop
        execute format('select exists (select from %s as t where to_jsonb(t)::text like %L
                        or to_jsonb(t)::text like %L)', place.name, '%TEXT%', '%HEX%') into found;
        if found then raise 'found in %', place.name; end if;
    end loop; end $$";

fn assert_absent(text: &str) -> String {
    // Bytes are searched as hexadecimal digits.
    NOWHERE.replace("TEXT", text).replace("HEX", &hex::encode(text))
}

async fn create(api: &Api, key: &str, path: &str, body: Value) -> Value {
    let (status, response) = api.send(Method::POST, path, Some(key), &body).await;
    assert_eq!(status, StatusCode::CREATED, "{path}: {response}");
    response
}

fn fields() -> Value {
    json!([
        {"name": "mail", "label": "E-mail", "type": "email"},
        {"name": "friend", "label": "A friend's", "type": "email"},
        {"name": "text", "label": "Text", "type": "text"},
    ])
}

async fn erase(api: &Api, key: &str, form: Uuid, email: &str) -> (StatusCode, Value) {
    api.send(Method::DELETE, &format!("/api/forms/{form}/submissions?email={email}"), Some(key), &Value::Null)
        .await
}

#[tokio::test]
async fn an_erased_address_occurs_nowhere() {
    let api = Api::start(&[]).await;
    let (key, account) = api.trial_on(domain::plans::Plan::Pro).await;
    let page = json!({"slug": "guests", "title": "G", "html": "<!-- entries -->", "entryTemplate": "<p>{{text}}</p>"});
    let page = create(&api, &key, "/api/pages", page).await["id"].as_str().unwrap().to_owned();
    let form =
        create(&api, &key, "/api/forms", json!({"name": "F", "fields": fields(), "autoEntryPageId": page}))
            .await;
    let form: Uuid = form["formId"].as_str().unwrap().parse().unwrap();
    let hook = json!({"url": "https://example.com/hook", "formIds": [form], "events": ["*"]});
    create(&api, &key, "/api/webhooks", hook).await;

    // With its effects: an entry, a delivery, outbox rows.
    let payload = json!({"mail": "Ana@Example.com", "text": MARKER});
    let upsert = json!({"externalId": MARKER, "payload": payload});
    let path = format!("/api/forms/{form}/submissions/upsert");
    let (status, response) = api.send(Method::PUT, &path, Some(&key), &upsert).await;
    assert!(status.is_success(), "{response}");
    let id = response["data"]["id"].as_str().unwrap().to_owned();
    // With a stored idempotent response and a receiver's response.
    let status_path = format!("/api/forms/{form}/submissions/{id}/status");
    let headers = [("authorization", format!("Bearer {key}")), ("idempotency-key", "k".to_owned())];
    let marked = api.send_with(Method::POST, &status_path, &headers, &json!({"status": "archived"})).await;
    assert_eq!(marked.0, StatusCode::OK, "{}", marked.1);
    api.execute(&format!(
        "insert into delivery_attempts (delivery_id, attempt, duration_ms, response_body, attempted_at)
         select id, 1, 5, '{MARKER}', now() from deliveries;
         insert into entry_archives (id, account_id, page_id, slug, subdomain_id, deleted_by, created_at)
         select gen_random_uuid(), account_id, id, slug, subdomain_id, 'ana', now() from pages where id = '{page}';
         insert into archived_entries (archive_id, id, data, submission_id, created_at)
         select a.id, e.id, e.data, e.submission_id, e.created_at from entry_archives a, page_entries e"
    ))
    .await
    .unwrap();
    // As spam, in another person's field, and in a field that the form no longer has.
    let at = "2027-01-30T10:00:00Z";
    insert_submission(&api, form, at, "spam", &json!({"mail": "ana@example.com", "text": MARKER})).await;
    insert_submission(&api, form, at, "received", &json!({"friend": "ana@example.com ", "text": MARKER}))
        .await;
    insert_submission(&api, form, at, "received", &json!({"gone": "ANA@example.com", "text": MARKER})).await;
    // Others stay: another address, and a text in a field that is not an e-mail field.
    insert_submission(&api, form, at, "received", &json!({"mail": "banana@example.com", "text": "kept"}))
        .await;
    insert_submission(
        &api,
        form,
        at,
        "received",
        &json!({"mail": "b@example.com", "text": "ana@example.com"}),
    )
    .await;
    assert!(api.execute(&assert_absent(MARKER)).await.is_err(), "the search finds the marker");

    let (status, response) = erase(&api, &key, form, "%20ANA@example.com").await;
    assert_eq!((status, &response["deleted"]), (StatusCode::OK, &json!(4)), "{response}");
    api.execute(&assert_absent(MARKER)).await.unwrap();
    api.execute(&assert_absent("Ana@Example.com")).await.unwrap();
    let counted = format!(
        "do $$ begin
         assert (select submission_count from forms where id = '{form}') = 2, 'the count';
         assert (select count(*) from submissions) = 2, 'the others';
         assert (select entry_count from pages where id = '{page}') = 0, 'the entries';
         assert (select count(*) from deliveries where state = 'pending') = 3, 'the deliveries';
         assert not exists (select from idempotent_calls where account_id = '{account}'), 'stored answers';
         end $$"
    );
    api.execute(&counted).await.unwrap();
    let payloads = "do $$ declare payloads jsonb; begin
         for payloads in select payload from deliveries loop
             assert payloads ->> 'type' = 'submission.deleted' and payloads #>> '{data,submissionId}' is not null, payloads::text;
             assert payloads #> '{data,fields}' = '{}' and payloads #> '{data,externalId}' = 'null', payloads::text;
         end loop; end $$";
    api.execute(payloads).await.unwrap();

    let (_, again) = erase(&api, &key, form, "ana@example.com").await;
    assert_eq!(again["deleted"], 0);
}

#[tokio::test]
async fn an_entry_is_erased_while_its_page_is_being_archived() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(domain::plans::Plan::Pro).await;
    let page = json!({"slug": "guests", "title": "G", "html": "x", "entryTemplate": "<p>{{text}}</p>"});
    let page: Uuid = create(&api, &key, "/api/pages", page).await["id"].as_str().unwrap().parse().unwrap();
    let form =
        create(&api, &key, "/api/forms", json!({"name": "F", "fields": fields(), "autoEntryPageId": page}))
            .await;
    let form: Uuid = form["formId"].as_str().unwrap().parse().unwrap();
    let upsert = json!({"externalId": "a", "payload": {"mail": "ana@example.com", "text": MARKER}});
    let path = format!("/api/forms/{form}/submissions/upsert");
    assert!(api.send(Method::PUT, &path, Some(&key), &upsert).await.0.is_success());

    let account = api.account_of(&key).await;
    let mut tx = api.begin().await;
    let now = service::Clock::system().now();
    store::archives::insert_archive(&mut tx, account, page, Uuid::from_u128(1), "ana", now).await.unwrap();
    store::pages::delete_page(&mut tx, account, page).await.unwrap();
    let archiving = async {
        api.until_lock_wait().await;
        store::commit(tx).await.unwrap();
    };
    let ((status, response), ()) = futures::join!(erase(&api, &key, form, "ana@example.com"), archiving);
    assert_eq!((status, &response["deleted"]), (StatusCode::OK, &json!(1)), "{response}");
    api.execute(&assert_absent(MARKER)).await.unwrap();
}

#[tokio::test]
async fn erasure_spans_transactions_and_requires_an_address() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(domain::plans::Plan::Pro).await;
    let form = create(&api, &key, "/api/forms", json!({"name": "F", "fields": fields()})).await;
    let form: Uuid = form["formId"].as_str().unwrap().parse().unwrap();
    let many = format!(
        "insert into submissions (id, account_id, form_id, payload, created_at, updated_at)
         select gen_random_uuid(), account_id, f.id, '{{\"mail\": \"ana@example.com\"}}', now(), now()
         from forms f, generate_series(1, 1001) where f.id = '{form}';
         update forms set submission_count = 1001 where id = '{form}'"
    );
    api.execute(&many).await.unwrap();
    for wrong in ["", "ana", "ana@example.com,%20b@example.com"] {
        let (status, problem) = erase(&api, &key, form, wrong).await;
        assert_eq!(
            (status, &problem["fieldErrors"][0]["field"]),
            (StatusCode::BAD_REQUEST, &json!("email")),
            "{wrong}: {problem}"
        );
    }
    let (_, response) = erase(&api, &key, form, "ana@example.com").await;
    assert_eq!(response["deleted"], 1001, "{response}");
    let none = "do $$ begin assert (select sum(submission_count) from forms) = 0; end $$";
    api.execute(none).await.unwrap();
}

#[tokio::test]
async fn an_international_address_is_erased_in_both_spellings_and_among_extra_texts() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(domain::plans::Plan::Pro).await;
    let form = create(&api, &key, "/api/forms", json!({"name": "F", "fields": fields()})).await;
    let form: Uuid = form["formId"].as_str().unwrap().parse().unwrap();
    let at = "2027-01-30T10:00:00Z";
    for address in ["%61na@b%C3%BCcher.example", "ana@xn--bcher-kva.example"] {
        for stored in ["Ana@bücher.example", "ana@xn--bcher-kva.example"] {
            insert_submission(&api, form, at, "received", &json!({"mail": stored})).await;
        }
        let extra = insert_submission(&api, form, at, "received", &json!({"text": "x"})).await;
        api.execute(&format!(
            "update submissions set extra = '{{\"cc\": \"b@example.com; ana@bücher.example\"}}' where id = '{extra}'"
        ))
        .await
        .unwrap();
        insert_submission(&api, form, at, "received", &json!({"mail": "ana@bucher.example"})).await;
        let (status, response) = erase(&api, &key, form, address).await;
        assert_eq!((status, &response["deleted"]), (StatusCode::OK, &json!(3)), "{response}");
    }
}
