//! One more click for submissions that look like a robot's, and the files of spam.

use base64::Engine as _;
use contract::Change;
use http::{Method, StatusCode};
use serde_json::json;
use store::submissions::SubmissionFilter;
use uuid::Uuid;

use crate::client::{NAVIGATION, TestResponse};
use crate::fixtures::{Account, now, one_text_field, submit_path};
use crate::harness::Edge;

/// Reads a hidden input of a page.
fn hidden(page: &TestResponse, name: &str) -> String {
    let text = page.text();
    let after = text.split_once(&format!("name=\"{name}\" value=\"")).ok_or(&text).unwrap().1;
    after.split_once('"').unwrap().0.replace("&amp;", "&")
}

/// Statuses of a form's submissions, oldest first.
async fn statuses(edge: &Edge, account: &Account<'_>, form: Uuid) -> Vec<&'static str> {
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    let filter = SubmissionFilter { limit: 1_000, ..SubmissionFilter::default() };
    let rows = store::submissions::list_submissions(&mut conn, account.id, form, &filter).await.unwrap().rows;
    rows.iter().rev().map(|row| row.status.as_str()).collect()
}

/// The id of the only submission of a form.
async fn only_id(edge: &Edge, account: &Account<'_>, form: Uuid) -> Uuid {
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    let filter = SubmissionFilter { limit: 1, ..SubmissionFilter::default() };
    store::submissions::list_submissions(&mut conn, account.id, form, &filter).await.unwrap().rows[0].id
}

/// Submits what the honeypot catches, as a browser.
async fn suspected(edge: &Edge, form: Uuid, answer: &str, more: &[(&str, &str)]) -> TestResponse {
    let pairs = [&[("a", answer), ("contact.website", "filled in by a password manager")], more].concat();
    let asked = edge.visitor.post_form(&submit_path(form), &pairs).await;
    assert_eq!(asked.status, StatusCode::OK, "{}", asked.text());
    asked
}

async fn click(edge: &Edge, form: Uuid, token: &str) -> TestResponse {
    edge.visitor.post_form(&format!("/api/forms/{form}/confirm"), &[("form.confirmation", token)]).await
}

#[tokio::test]
async fn a_suspicion_asks_a_browser_for_one_click_that_receives_the_submission() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let webhook = account.webhook(None, &[]).await;
    let asked =
        suspected(&edge, form, "Ada", &[("form.lang", "de"), ("form.look", "embed=1&form.theme=dark")]).await;
    assert!(
        asked.text().contains("Noch ein Schritt") && !asked.text().contains("data-submitted"),
        "{}",
        asked.text()
    );
    assert!(asked.text().contains("data-theme=\"dark\"") && asked.text().contains("class=\"embedded\""));
    assert_eq!(hidden(&asked, "form.look"), "embed=1&form.theme=dark");
    assert_eq!(statuses(&edge, &account, form).await, ["spam"], "kept even if the visitor leaves");
    assert!(account.deliveries(webhook).await.is_empty());
    let token = hidden(&asked, "form.confirmation");
    let pairs =
        [("form.confirmation", &*token), ("form.lang", "de"), ("form.look", "embed=1&form.theme=dark")];
    let thanked = edge.visitor.post_form(&format!("/api/forms/{form}/confirm"), &pairs).await;
    assert_eq!(thanked.status, StatusCode::SEE_OTHER, "{}", thanked.text());
    let location = thanked.header("location");
    assert_eq!(location, format!("/f/{form}/thanks?lang=de&embed=1&form.theme=dark"));
    assert_eq!(statuses(&edge, &account, form).await, ["received"]);
    assert_eq!(
        (account.count(form).await, account.deliveries(webhook).await.len()),
        (1, 1),
        "with all effects"
    );
    assert_eq!(account.submissions(form).await, [json!({"a": "Ada"})]);
}

#[tokio::test]
async fn replaying_a_confirmation_does_not_undo_the_owners_decision() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let token = hidden(&suspected(&edge, form, "x", &[]).await, "form.confirmation");
    assert_eq!(click(&edge, form, &token).await.status, StatusCode::SEE_OTHER);
    let marked = "update submissions set status = 'spam', spam_reasons = '{honeypot}'";
    edge.run(marked).await;
    assert_eq!(click(&edge, form, &token).await.status, StatusCode::SEE_OTHER, "thanked, as at first");
    assert_eq!(statuses(&edge, &account, form).await, ["spam"]);
    assert_eq!(account.count(form).await, 1, "counted once");
}

#[tokio::test]
async fn forged_expired_and_borrowed_confirmations_are_refused() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let (form, other) = (account.form(one_text_field()).await, account.form(one_text_field()).await);
    let token = hidden(&suspected(&edge, form, "x", &[]).await, "form.confirmation");
    let key = domain::encryption::MasterKey::of_secret(crate::harness::TOKEN.as_bytes());
    let id = only_id(&edge, &account, form).await;
    let expired = domain::confirmation::token(&key, form, id, now() - chrono::TimeDelta::seconds(1));
    for (form, token) in [(form, "forged"), (form, ""), (form, &*expired), (other, &*token)] {
        let refused = click(&edge, form, token).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text());
    }
    assert_eq!(statuses(&edge, &account, form).await, ["spam"]);
}

#[tokio::test]
async fn programs_see_no_change_and_a_click_answers_no_rate() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form_with(one_text_field(), |form| form.spam.per_minute = Some(1)).await;
    let headers = [("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json")];
    let body = "a=x&contact.website=http%3A%2F%2Fspam.test";
    let sent = edge.visitor.send(Method::POST, "localhost", &submit_path(form), &headers, body).await;
    assert_eq!((sent.status, &sent.json()["success"]), (StatusCode::CREATED, &json!(true)));
    let pairs = [("a", "y"), ("contact.website", "x")];
    let over = edge.visitor.post_form(&submit_path(form), &pairs).await;
    assert_eq!(over.status, StatusCode::SEE_OTHER, "over the rate: {}", over.text());
    assert_eq!(statuses(&edge, &account, form).await, ["spam", "spam"]);
}

#[tokio::test]
async fn a_confirmation_respects_the_limits_of_the_form() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account
        .form_with(one_text_field(), |form| {
            form.max_submissions = Some(1);
            form.unique_by = Some(vec!["a".to_owned()]);
        })
        .await;
    let tokens = [
        hidden(&suspected(&edge, form, "x", &[]).await, "form.confirmation"),
        hidden(&suspected(&edge, form, "y", &[]).await, "form.confirmation"),
    ];
    let clicks = [click(&edge, form, &tokens[0]).await, click(&edge, form, &tokens[1]).await];
    assert_eq!(clicks.map(|click| click.status), [StatusCode::SEE_OTHER, StatusCode::GONE]);
    assert_eq!(account.count(form).await, 1);
    edge.run("update forms set max_submissions = null").await;
    let again = hidden(&suspected_again(&edge, form).await, "form.confirmation");
    assert_eq!(click(&edge, form, &again).await.status, StatusCode::CONFLICT, "x was answered before");
}

/// Submits the first answer once more, when the edge knows of the removed limit.
async fn suspected_again(edge: &Edge, form: Uuid) -> TestResponse {
    edge.run("update forms set updated_at = updated_at + interval '1 second'").await;
    edge.publish_change(Change::Form { form_id: form }).await;
    let pairs = [("a", "x"), ("contact.website", "x")];
    sandbox::test::eventually(async || {
        let asked = edge.visitor.post_form(&submit_path(form), &pairs).await;
        (asked.status == StatusCode::OK).then_some(asked)
    })
    .await
}

#[tokio::test]
async fn concurrent_clicks_receive_a_submission_once() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let webhook = account.webhook(None, &[]).await;
    let token = hidden(&suspected(&edge, form, "x", &[]).await, "form.confirmation");
    let clicks = (0..8).map(|_| click(&edge, form, &token));
    let clicks = futures::future::join_all(clicks).await;
    assert!(clicks.iter().all(|click| click.status == StatusCode::SEE_OTHER), "a double click: {clicks:?}");
    assert_eq!((account.count(form).await, account.deliveries(webhook).await.len()), (1, 1));
}

#[tokio::test]
async fn a_prefilled_link_is_no_robot() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let fields = json!([
        {"name": "a", "label": "A", "type": "text", "required": true},
        {"name": "b", "label": "B", "type": "email", "required": true},
    ]);
    let form = account.form_with(fields, |form| form.spam.min_seconds = 60).await;
    let submit = async |query: &str| {
        let page = edge.visitor.get("localhost", &format!("/f/{form}{query}")).await;
        let token = hidden(&page, "form.token");
        let pairs = [("a", "x"), ("b", "x@example.com"), ("form.token", &*token)];
        edge.visitor.post_form(&submit_path(form), &pairs).await.status
    };
    assert_eq!(submit("?a=x&b=x%40example.com").await, StatusCode::SEE_OTHER, "nothing was left to fill");
    assert_eq!(statuses(&edge, &account, form).await, ["received"]);
    // A token counts from earlier by what a person needs less, so its time says how long that is.
    let left = async |query: &str| {
        let before = now().timestamp();
        let page = edge.visitor.get("localhost", &format!("/f/{form}{query}")).await;
        let token = hidden(&page, "form.token");
        let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(token).unwrap();
        let second = i64::from_be_bytes(bytes[..8].try_into().unwrap());
        second + 60 - before..=second + 60 - before + 1
    };
    assert!(left("").await.contains(&2) || left("").await.contains(&3));
    assert!(left("?a=x").await.contains(&1));
}

fn with_file() -> serde_json::Value {
    json!([{"name": "a", "label": "A", "type": "text"}, {"name": "cv", "label": "CV", "type": "file"}])
}

/// Posts a form with a file that the honeypot catches, and is asked for the click.
async fn post_cv(edge: &Edge, form: Uuid, content: &[u8]) -> TestResponse {
    let asked = send_cv(edge, form, content).await;
    assert_eq!(asked.status, StatusCode::OK, "{}", asked.text());
    asked
}

async fn send_cv(edge: &Edge, form: Uuid, content: &[u8]) -> TestResponse {
    let mut body = Vec::new();
    body.extend(b"--xx\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\nAda\r\n");
    body.extend(b"--xx\r\ncontent-disposition: form-data; name=\"contact.website\"\r\n\r\nx\r\n");
    body.extend(b"--xx\r\ncontent-disposition: form-data; name=\"cv\"; filename=\"cv.pdf\"\r\ncontent-type: application/pdf\r\n\r\n");
    body.extend(content);
    body.extend(b"\r\n--xx--\r\n");
    let headers = [("content-type", "multipart/form-data; boundary=xx"), NAVIGATION];
    edge.visitor.send(Method::POST, "localhost", &submit_path(form), &headers, body).await
}

/// Asserts how many files belong to a submission.
async fn assert_bound(edge: &Edge, files: i64) {
    let count = "select count(*) from form_files where submission_id is not null";
    edge.run(&format!("do $$ begin assert ({count}) = {files}; end $$")).await;
}

/// The bytes in the account's storage.
async fn counted_bytes(edge: &Edge, account: &Account<'_>) -> i64 {
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    store::usage::find_usage(&mut conn, account.id).await.unwrap().unwrap().storage_bytes
}

#[tokio::test]
async fn a_file_of_spam_is_kept_with_its_row_and_received_with_it() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(with_file()).await;
    let asked = post_cv(&edge, form, b"%PDF-1.7 a CV").await;
    let id = account.submissions(form).await[0]["cv"].as_str().unwrap().to_owned();
    let path = format!("/api/forms/{form}/files/{id}");
    edge.visitor.get("localhost", &path).await.problem(404, "not_found");
    assert_eq!(counted_bytes(&edge, &account).await, 0, "spam is not counted");
    edge.run(
        "do $$ begin assert (select count(*) from form_files where submission_id is not null) = 1; end $$",
    )
    .await;
    assert_eq!(click(&edge, form, &hidden(&asked, "form.confirmation")).await.status, StatusCode::SEE_OTHER);
    assert_eq!(edge.visitor.get("localhost", &path).await.status, StatusCode::FOUND, "to its download");
    assert_eq!(counted_bytes(&edge, &account).await, 13);
    // A row takes its file with it.
    post_cv(&edge, form, b"%PDF-1.7 spam").await;
    edge.run("delete from submissions where status = 'spam'").await;
    edge.run("do $$ begin assert (select count(*) from form_files) = 1; end $$").await;
}

#[tokio::test]
async fn a_flood_of_spam_files_stays_within_the_forms_limit() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(with_file()).await;
    for _ in 0..9 {
        post_cv(&edge, form, &vec![b'x'; 2 << 20]).await;
    }
    assert_eq!(statuses(&edge, &account, form).await, ["spam"; 9], "files replace no rows");
    assert_bound(&edge, 7).await; // 16 MiB in all
}

#[tokio::test]
async fn a_larger_file_waits_for_the_click() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(with_file()).await;
    let asked = post_cv(&edge, form, b"%PDF-1.7 a CV").await;
    // As if it were larger than spam may be.
    edge.run("update form_files set submission_id = null").await;
    assert_eq!(click(&edge, form, &hidden(&asked, "form.confirmation")).await.status, StatusCode::SEE_OTHER);
    let id = account.submissions(form).await[0]["cv"].as_str().unwrap().to_owned();
    let file = edge.visitor.get("localhost", &format!("/api/forms/{form}/files/{id}")).await;
    assert_eq!(file.status, StatusCode::FOUND, "to its download");
    assert_eq!(counted_bytes(&edge, &account).await, 13);
}

#[tokio::test]
async fn a_click_respects_the_storage_of_the_plan() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(with_file()).await;
    let token = hidden(&post_cv(&edge, form, b"%PDF-1.7 a CV").await, "form.confirmation");
    edge.run("update form_files set submission_id = null").await;
    edge.run(&format!("update usage set storage_bytes = {} - 12", 20 << 20)).await;
    assert_eq!(click(&edge, form, &token).await.status, StatusCode::FORBIDDEN);
    assert_eq!(statuses(&edge, &account, form).await, ["spam"]);
    assert_bound(&edge, 0).await;
    assert_eq!(account.count(form).await, 0, "nothing was changed");
    edge.run("update usage set storage_bytes = 0").await;
    assert_eq!(click(&edge, form, &token).await.status, StatusCode::SEE_OTHER);
    assert_eq!(counted_bytes(&edge, &account).await, 13);
    assert_bound(&edge, 1).await;
}

#[tokio::test]
async fn a_refused_click_binds_no_file_and_keeps_the_look() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account
        .form_with(with_file(), |form| {
            form.unique_by = Some(vec!["a".to_owned()]);
            form.appearance.accent = Some("#0f766e".to_owned());
        })
        .await;
    let asked = [post_cv(&edge, form, b"%PDF-1.7 1").await, post_cv(&edge, form, b"%PDF-1.7 2").await];
    let [first, second] = asked.map(|asked| hidden(&asked, "form.confirmation"));
    assert_eq!(click(&edge, form, &first).await.status, StatusCode::SEE_OTHER);
    edge.run("update form_files set submission_id = null where not is_counted").await;
    let refused = click(&edge, form, &second).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_bound(&edge, 1).await;
    assert!(refused.text().contains("#0f766e"), "{}", refused.text());
}

#[tokio::test]
async fn a_missing_proof_is_no_matter_of_a_click() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form_with(one_text_field(), |form| form.spam.proof_of_work = true).await;
    let pairs = [("a", "x"), ("contact.website", "x")];
    let sent = edge.visitor.post_form(&submit_path(form), &pairs).await;
    assert_eq!(sent.status, StatusCode::SEE_OTHER, "asked for a click that changes nothing: {}", sent.text());
    let key = domain::encryption::MasterKey::of_secret(crate::harness::TOKEN.as_bytes());
    let id = only_id(&edge, &account, form).await;
    let token = domain::confirmation::token(&key, form, id, now() + chrono::TimeDelta::minutes(1));
    assert_eq!(click(&edge, form, &token).await.status, StatusCode::CONFLICT, "it stays spam");
    assert_eq!(statuses(&edge, &account, form).await, ["spam"]);
}

#[tokio::test]
async fn files_over_the_rate_are_not_kept() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form_with(with_file(), |form| form.spam.per_minute = Some(1)).await;
    post_cv(&edge, form, b"%PDF-1.7 1").await;
    assert_eq!(send_cv(&edge, form, b"%PDF-1.7 2").await.status, StatusCode::SEE_OTHER);
    assert_eq!(statuses(&edge, &account, form).await, ["spam"; 2]);
    assert_bound(&edge, 1).await;
}

#[tokio::test]
async fn a_repeated_call_is_asked_again_until_it_is_confirmed() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let send = async || {
        let form_type = ("content-type", "application/x-www-form-urlencoded");
        let headers = [form_type, NAVIGATION, ("idempotency-key", "k")];
        let body = "a=x&contact.website=x";
        edge.visitor.send(Method::POST, "localhost", &submit_path(form), &headers, body).await
    };
    let (first, again) = (send().await, send().await);
    assert_eq!([first.status, again.status], [StatusCode::OK; 2], "{}", again.text());
    assert_eq!(again.header("idempotent-replayed"), "true");
    let token = hidden(&again, "form.confirmation");
    assert_eq!(click(&edge, form, &token).await.status, StatusCode::SEE_OTHER);
    assert_eq!(send().await.status, StatusCode::SEE_OTHER, "thanked");
    assert_eq!(statuses(&edge, &account, form).await, ["received"]);
}
