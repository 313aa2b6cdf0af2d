//! File fields of forms: announced, uploaded, bound to one submission, and served only as downloads.

use http::{Method, StatusCode};
use sandbox::test::until;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::{NAVIGATION, TestResponse};
use crate::fixtures::{Account, submit_path};
use crate::harness::Edge;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01";

fn fields() -> Value {
    json!([
        {"name": "name", "label": "Name", "type": "text", "required": true},
        {"name": "photo", "label": "Photo", "type": "file", "accept": "image/*", "maxFileSize": 1000},
        {"name": "other", "label": "Other", "type": "file"},
    ])
}

async fn announce(edge: &Edge, form: Uuid, body: &Value) -> TestResponse {
    edge.visitor.post(&format!("/api/forms/{form}/upload"), body).await
}

fn photo(size: usize) -> Value {
    json!({"field": "photo", "filename": "me.png", "contentType": "image/png", "sizeBytes": size})
}

async fn put(edge: &Edge, announced: &TestResponse, bytes: &[u8]) -> TestResponse {
    let address = announced.json()["uploadUrl"].as_str().unwrap().to_owned();
    let path = address.trim_start_matches(&format!("http://localhost:{}", edge.port())).to_owned();
    edge.visitor.send(Method::PUT, "localhost", &path, &[], bytes.to_vec()).await
}

/// Announces and uploads a photo. Returns its id.
async fn upload(edge: &Edge, form: Uuid) -> String {
    let announced = announce(edge, form, &photo(PNG.len())).await;
    assert_eq!(announced.status, StatusCode::CREATED, "{}", announced.text());
    assert_eq!(put(edge, &announced, PNG).await.status, StatusCode::OK);
    announced.json()["objectId"].as_str().unwrap().to_owned()
}

/// A field's name, the filename and content type if it is a file, and the content.
type Part<'a> = (&'a str, Option<(&'a str, &'a str)>, &'a [u8]);

/// Posts a multipart form, as a browser does.
async fn post_parts(edge: &Edge, form: Uuid, parts: &[Part<'_>]) -> TestResponse {
    post_parts_with(edge, form, parts, &[NAVIGATION]).await
}

async fn post_parts_with(edge: &Edge, form: Uuid, parts: &[Part<'_>], more: &[(&str, &str)]) -> TestResponse {
    let mut body = Vec::new();
    for (name, file, content) in parts {
        let filename = file.map(|(filename, _)| format!("; filename=\"{filename}\"")).unwrap_or_default();
        let kind = file.map(|(_, kind)| format!("content-type: {kind}\r\n")).unwrap_or_default();
        let head = format!("--xx\r\ncontent-disposition: form-data; name=\"{name}\"{filename}\r\n{kind}\r\n");
        body.extend([head.as_bytes(), content, b"\r\n"].concat());
    }
    body.extend(b"--xx--\r\n");
    let headers = [&[("content-type", "multipart/form-data; boundary=xx")], more].concat();
    edge.visitor.send(Method::POST, "localhost", &submit_path(form), &headers, body).await
}

/// The number of files in the blob store.
fn blob_count(edge: &Edge) -> usize {
    edge.blobs.files().len()
}

#[tokio::test]
async fn files_for_closed_or_full_forms_are_not_stored() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let past = crate::fixtures::now() - chrono::TimeDelta::hours(1);
    let closed = account.form_with(fields(), |form| form.closes_at = Some(past)).await;
    let full = account.form_with(fields(), |form| form.max_submissions = Some(1)).await;
    let parts: [Part<'_>; 2] = [("name", None, b"Ada"), ("photo", Some(("me.png", "image/png")), PNG)];
    // The edge caches the form while it still accepts submissions.
    assert_eq!(edge.visitor.get("localhost", &format!("/f/{full}")).await.status, StatusCode::OK);
    edge.visitor.post(&submit_path(full), &json!({"name": "Ada"})).await;
    edge.visitor.post(&submit_path(full), &json!({"name": "Bea"})).await.problem(410, "form_full");
    for form in [closed, full] {
        let refused = post_parts(&edge, form, &parts).await;
        assert_eq!(refused.status, StatusCode::GONE, "{}", refused.text());
        let accept = [("accept", "application/json")];
        let code = if form == closed { "form_closed" } else { "form_full" };
        post_parts_with(&edge, form, &parts[1..], &accept).await.problem(410, code);
    }
    assert_eq!(blob_count(&edge), 0);
    edge.run("do $$ begin assert not exists (select from form_files); end $$").await;
    // The edge does not check a full form on every request, so its cached state may be outdated.
    edge.run(&format!("update forms set submission_count = 0 where id = '{full}'")).await;
    until(async || post_parts(&edge, full, &parts).await.status == StatusCode::SEE_OTHER).await;
    assert_eq!((blob_count(&edge), account.count(full).await), (1, 1));
}

#[tokio::test]
async fn a_form_known_to_be_closed_rejects_files_without_postgres() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let past = crate::fixtures::now() - chrono::TimeDelta::hours(1);
    let closed = account.form_with(fields(), |form| form.closes_at = Some(past)).await;
    let parts: [Part<'_>; 1] = [("photo", Some(("me.png", "image/png")), PNG)];
    assert_eq!(post_parts(&edge, closed, &parts).await.status, StatusCode::GONE);
    edge.postgres.cut();
    assert_eq!(post_parts(&edge, closed, &parts).await.status, StatusCode::GONE);
}

#[tokio::test]
async fn a_replayed_submission_with_files_succeeds_after_the_form_is_full() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form_with(fields(), |form| form.max_submissions = Some(1)).await;
    let parts: [Part<'_>; 2] = [("name", None, b"Ada"), ("photo", Some(("me.png", "image/png")), PNG)];
    let headers = [("accept", "application/json"), ("idempotency-key", "order-17")];
    let first = post_parts_with(&edge, form, &parts, &headers).await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.text());
    // This rejection tells the edge that the form is full.
    edge.visitor.post(&submit_path(form), &json!({"name": "Bea"})).await.problem(410, "form_full");
    let again = post_parts_with(&edge, form, &parts, &headers).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (StatusCode::CREATED, "true"));
    assert_eq!(again.json(), first.json());
    let other: [Part<'_>; 1] = [("photo", Some(("me.png", "image/png")), &PNG[..12])];
    post_parts_with(&edge, form, &other, &headers).await.problem(409, "idempotency_mismatch");
    assert_eq!((blob_count(&edge), account.count(form).await), (1, 1));
}

async fn stored_bytes(edge: &Edge, account: &Account<'_>) -> i64 {
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    store::usage::find_usage(&mut conn, account.id).await.unwrap().unwrap().storage_bytes
}

#[tokio::test]
async fn a_file_is_announced_uploaded_submitted_and_downloaded() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(fields()).await;
    let announced = announce(&edge, form, &photo(PNG.len())).await;
    assert_eq!(announced.status, StatusCode::CREATED, "{}", announced.text());
    assert_eq!(announced.header("access-control-allow-origin"), "*");
    let body = announced.json();
    assert_eq!((&body["method"], &body["maxSizeBytes"]), (&json!("PUT"), &json!(1000)));
    assert_eq!(body["uploadHeaders"], json!({"content-type": "image/png"}));
    assert!(body["expiresAt"].is_string());
    let id = body["objectId"].as_str().unwrap().to_owned();
    let fetched = format!("/api/forms/{form}/files/{id}");
    let answers = json!({"name": "Ada", "photo": id});
    let early = edge.visitor.post(&submit_path(form), &answers).await.problem(400, "validation_failed");
    assert_eq!(early["fieldErrors"][0]["field"], "photo", "the file is not uploaded yet");
    assert_eq!(put(&edge, &announced, PNG).await.status, StatusCode::OK);
    edge.visitor.get("localhost", &fetched).await.problem(404, "not_found");
    assert_eq!(stored_bytes(&edge, &account).await, 0, "a file counts once it is bound");

    let sent = edge.visitor.post(&submit_path(form), &answers).await;
    assert_eq!(sent.status, StatusCode::CREATED, "{}", sent.text());
    assert_eq!(stored_bytes(&edge, &account).await, PNG.len() as i64);
    let redirect = edge.visitor.get("localhost", &fetched).await;
    assert_eq!((redirect.status, redirect.header("cache-control")), (StatusCode::FOUND, "no-store"));
    let path = redirect
        .header("location")
        .trim_start_matches(&format!("http://localhost:{}", edge.port()))
        .to_owned();
    let file = edge.visitor.get("localhost", &path).await;
    assert_eq!((file.status, file.body.as_ref()), (StatusCode::OK, PNG));
    assert_eq!(file.header("content-disposition"), "attachment; filename*=UTF-8''me%2Epng");
    assert_eq!(file.header("content-type"), "application/octet-stream");
    assert_eq!(file.header("x-content-type-options"), "nosniff");
    assert!(file.header("content-security-policy").contains("sandbox"));
    for forged in [path.replace("expires=", "expires=9"), path.split('?').next().unwrap().to_owned()] {
        edge.visitor.get("localhost", &forged).await.problem(403, "forbidden");
    }
    let elsewhere = account.form(fields()).await;
    let of_other = format!("/api/forms/{elsewhere}/files/{id}");
    edge.visitor.get("localhost", &of_other).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_download_url_expires() {
    let edge = Edge::with(&["forms.download_url_ttl=0s"]).await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(fields()).await;
    let id = upload(&edge, form).await;
    edge.visitor.post(&submit_path(form), &json!({"name": "Ada", "photo": id})).await;
    let redirect = edge.visitor.get("localhost", &format!("/api/forms/{form}/files/{id}")).await;
    let path = redirect
        .header("location")
        .trim_start_matches(&format!("http://localhost:{}", edge.port()))
        .to_owned();
    edge.visitor.get("localhost", &path).await.problem(403, "forbidden");
}

#[tokio::test]
async fn a_file_belongs_to_one_submission_of_its_form_and_field() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let (form, other) = (account.form(fields()).await, account.form(fields()).await);
    let id = upload(&edge, form).await;
    let refused = async |form: Uuid, answers: Value| {
        let problem = edge.visitor.post(&submit_path(form), &answers).await.problem(400, "validation_failed");
        problem["fieldErrors"][0]["field"].as_str().unwrap().to_owned()
    };
    assert_eq!(refused(other, json!({"name": "x", "photo": id})).await, "photo");
    assert_eq!(refused(form, json!({"name": "x", "other": id})).await, "other");
    assert_eq!(refused(form, json!({"name": "x", "photo": Uuid::nil()})).await, "photo");
    assert_eq!(refused(form, json!({"name": "x", "photo": "me.png"})).await, "photo");
    assert_eq!(account.count(form).await, 0, "a rejected submission must not be stored");
    let body = json!({"name": "x", "photo": id});
    let (path, both) = (submit_path(form), &body);
    let both = tokio::join!(edge.visitor.post(&path, both), edge.visitor.post(&path, both));
    let mut statuses = [both.0.status.as_u16(), both.1.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 400]);
    assert_eq!(account.count(form).await, 1);
    assert_eq!(stored_bytes(&edge, &account).await, PNG.len() as i64);
}

#[tokio::test]
async fn field_rules_are_checked_at_announcement_and_at_upload() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(fields()).await;
    let with = |key: &str, value: Value| {
        let mut body = photo(10);
        body[key] = value;
        body
    };
    for (body, field) in [
        (with("field", json!("name")), "field"),
        (with("field", json!("nothing")), "field"),
        (with("filename", json!("a/b.png")), "filename"),
        (with("filename", json!("page.html")), "filename"),
        (with("filename", json!("")), "filename"),
        (with("contentType", json!("nonsense")), "contentType"),
        (with("sizeBytes", json!(0)), "sizeBytes"),
        (with("sizeBytes", json!(1001)), "sizeBytes"),
        (with("sizeBytes", json!("1")), "sizeBytes"),
        (with("extra", json!(1)), "extra"),
    ] {
        let problem = announce(&edge, form, &body).await.problem(400, "validation_failed");
        assert_eq!(problem["fieldErrors"][0]["field"], field, "{body} {problem}");
    }
    assert_eq!(announce(&edge, form, &with("sizeBytes", json!(10.0))).await.status, StatusCode::CREATED);
    let too_large = json!({"field": "other", "filename": "a.bin", "sizeBytes": 3 << 20});
    announce(&edge, form, &too_large).await.problem(400, "validation_failed");
    let html = b"<!doctype html><script>alert(1)</script>";
    let announced = announce(&edge, form, &photo(html.len())).await;
    put(&edge, &announced, html).await.problem(400, "validation_failed");
    let announced = announce(&edge, form, &photo(PNG.len())).await;
    put(&edge, &announced, &[PNG, PNG].concat()).await.problem(413, "payload_too_large");
    announce(&edge, Uuid::nil(), &photo(10)).await.problem(404, "not_found");
    edge.run(&format!("update forms set closes_at = now() - interval '1 second' where id = '{form}'")).await;
    edge.publish_unreadable_signal().await;
    sandbox::test::until(async || announce(&edge, form, &photo(10)).await.status == StatusCode::GONE).await;
}

#[tokio::test]
async fn unbound_files_are_limited_per_form_and_per_visitor() {
    let edge = Edge::with(&[
        "forms.max_unbound_bytes_per_form=200000",
        "forms.max_unbound_bytes_per_visitor=300000",
    ])
    .await;
    let account = edge.account("quiet-otter").await;
    let (form, other) = (account.form(fields()).await, account.form(fields()).await);
    // Each file counts as at least 64 KiB.
    for _ in 0..3 {
        assert_eq!(announce(&edge, form, &photo(1)).await.status, StatusCode::CREATED);
    }
    let full = announce(&edge, form, &photo(1)).await;
    full.problem(429, "rate_limited");
    assert!(!full.header("retry-after").is_empty());
    let within =
        post_parts(&edge, form, &[("name", None, b"x"), ("photo", Some(("a.png", "image/png")), PNG)]);
    assert_eq!(within.await.status, StatusCode::TOO_MANY_REQUESTS);
    let larger = json!({"field": "other", "filename": "a.bin", "sizeBytes": 100_000});
    assert_eq!(announce(&edge, other, &larger).await.status, StatusCode::CREATED);
    announce(&edge, other, &photo(1)).await.problem(429, "rate_limited");
    edge.run("update form_files set visitor = '\\x00'").await;
    assert_eq!(
        announce(&edge, other, &larger).await.status,
        StatusCode::CREATED,
        "another visitor has its own limit"
    );
}

#[tokio::test]
async fn a_lock_timeout_answers_503_with_retry_after() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(fields()).await;
    let mut held = store::begin(&edge.database.db).await.unwrap();
    store::form_files::lock_unbound(&mut held, form, b"visitor").await.unwrap();
    let timed_out = announce(&edge, form, &photo(1)).await;
    timed_out.problem(503, "unavailable");
    assert!(!timed_out.header("retry-after").is_empty());
    store::rollback(held).await.unwrap();
    assert_eq!(announce(&edge, form, &photo(1)).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn an_exceeded_storage_quota_rejects_files() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(fields()).await;
    let id = upload(&edge, form).await;
    edge.run(&format!("update usage set storage_bytes = {} - 10", 20 << 20)).await;
    announce(&edge, form, &photo(11)).await.problem(403, "quota_exceeded");
    let sent = edge.visitor.post(&submit_path(form), &json!({"name": "x", "photo": id})).await;
    sent.problem(403, "quota_exceeded");
    assert_eq!(account.count(form).await, 0);
}

#[tokio::test]
async fn a_browser_submits_files_as_multipart() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(fields()).await;
    let shown = edge.visitor.get("localhost", &format!("/f/{form}")).await;
    assert!(shown.text().contains("enctype=\"multipart/form-data\""), "{}", shown.text());
    let png = ("C:\\pictures\\me.png", "image/png");
    let sent = post_parts(
        &edge,
        form,
        &[("name", None, "Zoë".as_bytes()), ("photo", Some(png), PNG), ("other", Some(("", "")), b"")],
    )
    .await;
    assert_eq!(sent.status, StatusCode::SEE_OTHER, "{}", sent.text());
    let stored = account.submissions(form).await;
    assert_eq!(stored[0]["name"], "Zoë");
    assert!(stored[0].get("other").is_none(), "an empty file input stores no value");
    let id = stored[0]["photo"].as_str().unwrap();
    let redirect = edge.visitor.get("localhost", &format!("/api/forms/{form}/files/{id}")).await;
    assert_eq!(redirect.status, StatusCode::FOUND);
    assert_eq!(stored_bytes(&edge, &account).await, PNG.len() as i64);
}

#[tokio::test]
async fn an_uploaded_file_survives_a_validation_error_elsewhere() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(fields()).await;
    let refused =
        post_parts(&edge, form, &[("name", None, b""), ("photo", Some(("me.png", "image/png")), PNG)]).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text());
    assert!(refused.text().contains("Already sent: me.png"), "{}", refused.text());
    let object_id = refused.text().split_once("<input type=\"hidden\" name=\"photo\" value=\"").unwrap().1;
    let object_id = object_id.split_once('"').unwrap().0;
    let none = Some(("", "application/octet-stream"));
    let sent = post_parts(
        &edge,
        form,
        &[("name", None, b"Ada"), ("photo", None, object_id.as_bytes()), ("photo", none, b"")],
    )
    .await;
    assert_eq!(sent.status, StatusCode::SEE_OTHER, "{}", sent.text());
    assert_eq!(account.submissions(form).await[0]["photo"], object_id);
}

#[tokio::test]
async fn the_error_page_names_the_rejected_file() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(fields()).await;
    for (file, content, message) in [
        (("me.html", "text/html"), b"<p>x".as_slice(), "This kind of file is not taken here."),
        (("me.png", "image/png"), b"<!doctype html><p>x", "This kind of file is not taken here."),
        (("me.png", "image/png"), &[PNG, &[0; 1_000]].concat(), "This file is too large: at most 1000 B."),
        (("me.png", "image/png"), b"", "Please choose the file once more."),
    ] {
        let refused = post_parts(&edge, form, &[("name", None, b"x"), ("photo", Some(file), content)]).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{message}");
        assert!(refused.text().contains(message), "{message}: {}", refused.text());
    }
    assert_eq!(account.count(form).await, 0);
    sandbox::test::until(async || edge.blobs.files().is_empty()).await;
}

#[tokio::test]
async fn multipart_submissions_have_a_size_limit() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(fields()).await;
    let text = vec![b'x'; (256 << 10) + 1];
    let refused = post_parts(&edge, form, &[("name", None, &text)]).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    let huge = vec![0; 4 << 20];
    let refused =
        post_parts(&edge, form, &[("name", None, b"x"), ("nothing", Some(("a", "b")), &huge)]).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    let headers = [("content-type", "multipart/form-data; boundary=xx")];
    let broken =
        edge.visitor.send(Method::POST, "localhost", &submit_path(form), &headers, "--xx\r\nno").await;
    assert_eq!(broken.status, StatusCode::BAD_REQUEST);
    assert_eq!(account.count(form).await, 0);
}

#[tokio::test]
async fn deleting_a_form_releases_its_files() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(fields()).await;
    let id = upload(&edge, form).await;
    edge.visitor.post(&submit_path(form), &json!({"name": "Ada", "photo": id})).await;
    assert_eq!(stored_bytes(&edge, &account).await, PNG.len() as i64);
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    let later = crate::fixtures::now() + chrono::TimeDelta::seconds(1);
    assert!(store::blobs::lock_unreferenced(&mut conn, later).await.unwrap().is_none());
    assert!(store::forms::delete_form(&mut conn, account.id, form).await.unwrap());
    assert_eq!(stored_bytes(&edge, &account).await, 0);
    assert!(
        store::blobs::lock_unreferenced(&mut conn, later).await.unwrap().is_some(),
        "the blob must be unreferenced"
    );
}

#[tokio::test]
async fn an_invented_file_id_takes_no_usage_lock() {
    let edge = Edge::with(&["forms.lock_timeout=3s"]).await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(fields()).await;
    let real = upload(&edge, form).await;
    let mut counting = store::begin(&edge.database.db).await.unwrap();
    store::usage::lock(&mut counting, account.id).await.unwrap();
    let made_up = json!({"name": "x", "photo": Uuid::from_u128(7)});
    edge.visitor.post(&submit_path(form), &made_up).await.problem(400, "validation_failed");
    let waiting = edge.visitor.post(&submit_path(form), &json!({"name": "x", "photo": real})).await;
    waiting.problem(503, "unavailable");
    assert!(!waiting.header("retry-after").is_empty(), "a real file waits for the lock until the timeout");
    store::rollback(counting).await.unwrap();
    let stored = edge.visitor.post(&submit_path(form), &json!({"name": "x", "photo": real})).await;
    assert_eq!(stored.status, StatusCode::CREATED, "{}", stored.text());
}
