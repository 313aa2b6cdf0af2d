//! Spam checks: spam is stored separately, and a browser is asked for one more click.

use http::StatusCode;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::submissions::SubmissionFilter;
use uuid::Uuid;

use crate::fixtures::{Account, now, one_text_field, submit_path};
use crate::harness::Edge;

/// Status and spam reasons of a form's submissions, oldest first.
async fn verdicts(edge: &Edge, account: &Account<'_>, form: Uuid) -> Vec<(String, Vec<String>)> {
    let mut tx = store::begin(&edge.database.db).await.unwrap();
    let filter = SubmissionFilter { limit: 100, ..SubmissionFilter::default() };
    let mut rows =
        store::submissions::list_submissions(&mut tx, account.id, form, &filter).await.unwrap().rows;
    rows.reverse();
    rows.into_iter().map(|row| (row.status.as_str().to_owned(), row.spam_reasons)).collect()
}

/// The token in the form's page.
async fn token(edge: &Edge, form: Uuid) -> String {
    let page = edge.visitor.get("localhost", &format!("/f/{form}")).await;
    let after = page.text().split_once("name=\"form.token\" value=\"").unwrap().1;
    after.split_once('"').unwrap().0.to_owned()
}

/// The token of a page that was rendered `seconds` from now.
fn token_of(form: Uuid, seconds: i64) -> String {
    let key = domain::encryption::MasterKey::of_secret(crate::harness::TOKEN.as_bytes());
    domain::honeypot::token(&key, form, now().timestamp() + seconds)
}

#[tokio::test]
async fn spam_is_stored_separately_without_effects() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account
        .form_with(one_text_field(), |form| {
            form.max_submissions = Some(1);
            form.unique_by = Some(vec!["a".to_owned()]);
        })
        .await;
    let webhook = account.webhook(None, &[]).await;
    let path = submit_path(form);
    // `fresh` is from an hour in the future, so it is too fast on a slow machine too.
    let (fresh, old) = (token_of(form, 3_600), token_of(form, -10));
    let robots: [&[(&str, &str)]; 4] = [
        &[("a", "x"), ("form.token", &fresh), ("contact.website", "")],
        &[("a", "x"), ("form.token", &old), ("contact.website", "http://spam.test")],
        &[("a", "x"), ("form.token", "forged")],
        &[("a", "x"), ("form.token", &fresh), ("contact.website", "x")],
    ];
    for robot in robots {
        let sent = edge.visitor.post_form(&path, robot).await;
        assert_eq!(sent.status, StatusCode::OK, "{}", sent.text());
        assert!(sent.text().contains("name=\"form.confirmation\""), "{}", sent.text());
    }
    assert_eq!(account.count(form).await, 0, "spam does not count toward the limit");
    assert!(account.deliveries(webhook).await.is_empty(), "spam triggers no webhook");
    let person =
        edge.visitor.post_form(&path, &[("a", "x"), ("form.token", &old), ("contact.website", "")]).await;
    assert_eq!(
        person.status,
        StatusCode::SEE_OTHER,
        "spam does not count toward uniqueBy: {}",
        person.text()
    );
    let spam = |reasons: &[&str]| ("spam".to_owned(), reasons.iter().map(ToString::to_string).collect());
    let expected: Vec<(String, Vec<String>)> = vec![
        spam(&["too_fast"]),
        spam(&["honeypot"]),
        spam(&["token"]),
        spam(&["honeypot", "too_fast"]),
        ("received".to_owned(), vec![]),
    ];
    assert_eq!(verdicts(&edge, &account, form).await, expected);
    assert_eq!(account.count(form).await, 1);
}

#[tokio::test]
async fn api_clients_and_custom_forms_trigger_no_honeypot() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let path = submit_path(form);
    let program = json!({"a": "x", "contact.website": "x", "form.token": "forged"});
    assert_eq!(edge.visitor.post(&path, &program).await.status, StatusCode::CREATED);
    assert_eq!(edge.visitor.post_form(&path, &[("a", "y")]).await.status, StatusCode::SEE_OTHER);
    let statuses: Vec<_> =
        verdicts(&edge, &account, form).await.into_iter().map(|(status, _)| status).collect();
    assert_eq!(statuses, ["received", "received"]);
    assert_eq!(
        account.submissions(form).await,
        [json!({"a": "y"}), json!({"a": "x"})],
        "honeypot fields are not stored"
    );
}

#[tokio::test]
async fn a_form_applies_only_its_enabled_checks() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account
        .form_with(one_text_field(), |form| {
            form.spam.honeypot = false;
            form.spam.min_seconds = 0;
        })
        .await;
    let page = edge.visitor.get("localhost", &format!("/f/{form}")).await;
    assert!(!page.text().contains("contact.website"), "{}", page.text());
    let fresh = token(&edge, form).await;
    let answers = [("a", "x"), ("form.token", &*fresh), ("contact.website", "x")];
    assert_eq!(edge.visitor.post_form(&submit_path(form), &answers).await.status, StatusCode::SEE_OTHER);
    assert_eq!(verdicts(&edge, &account, form).await, [("received".to_owned(), Vec::<String>::new())]);
}

#[tokio::test]
async fn a_quick_correction_is_not_spam() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let old = token_of(form, -10);
    let refused = edge.visitor.post_form(&submit_path(form), &[("a", ""), ("form.token", &old)]).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert!(refused.text().contains(&format!("name=\"form.token\" value=\"{old}\"")), "{}", refused.text());
}

#[tokio::test]
async fn a_full_form_rejects_spam_too() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form_with(one_text_field(), |form| form.max_submissions = Some(1)).await;
    assert_eq!(edge.visitor.post(&submit_path(form), &json!({"a": "x"})).await.status, StatusCode::CREATED);
    let robot = edge.visitor.post_form(&submit_path(form), &[("a", "y"), ("contact.website", "x")]).await;
    assert_eq!(robot.status, StatusCode::GONE);
    assert_eq!(account.submissions(form).await, [json!({"a": "x"})]);
    let nothing: Value =
        edge.visitor.post(&submit_path(form), &json!({"a": "z"})).await.problem(410, "form_full");
    assert!(nothing["detail"].is_string());
}

/// Solves a proof-of-work challenge, as the browser script does.
async fn solve(edge: &Edge, form: Uuid) -> String {
    let response = edge.visitor.get("localhost", &format!("/api/forms/{form}/challenge")).await;
    assert_eq!((response.status, response.header("access-control-allow-origin")), (StatusCode::OK, "*"));
    let puzzle = response.json();
    let challenge = puzzle["challenge"].as_str().unwrap();
    let bits = puzzle["bits"].as_u64().unwrap();
    let is_solved = |at: u64, number: u64| {
        let digest = Sha256::digest(format!("{challenge}:{at}:{number}"));
        u64::from_be_bytes(digest[..8].try_into().unwrap()) >> (64 - bits) == 0
    };
    let solution = |at| (0..).find(|number| is_solved(at, *number)).unwrap().to_string();
    let solutions: Vec<_> = (0..puzzle["puzzles"].as_u64().unwrap()).map(solution).collect();
    format!("{challenge}:{}", solutions.join(","))
}

#[tokio::test]
async fn each_submission_needs_its_own_proof_of_work() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form_with(one_text_field(), |form| form.spam.proof_of_work = true).await;
    let other = account.form_with(one_text_field(), |form| form.spam.proof_of_work = true).await;
    let path = submit_path(form);
    let page = edge.visitor.get("localhost", &format!("/f/{form}")).await;
    assert!(
        page.text().contains("name=\"form.proof\"") && page.text().contains("<noscript>"),
        "{}",
        page.text()
    );
    let proof = solve(&edge, form).await;
    let elsewhere = solve(&edge, other).await;
    for answers in [
        json!({"a": "good", "form.proof": proof}),
        json!({"a": "again", "form.proof": proof}),
        json!({"a": "of another form", "form.proof": elsewhere}),
        json!({"a": "none"}),
        json!({"a": "wrong", "form.proof": 7}),
    ] {
        assert_eq!(edge.visitor.post(&path, &answers).await.status, StatusCode::CREATED, "{answers}");
    }
    let proof = solve(&edge, form).await;
    let posted = edge.visitor.post_form(&path, &[("a", "posted"), ("form.proof", &proof)]).await;
    assert_eq!(posted.status, StatusCode::SEE_OTHER);
    let verdicts = verdicts(&edge, &account, form).await;
    let statuses: Vec<_> = verdicts.iter().map(|(status, _)| status.as_str()).collect();
    assert_eq!(statuses, ["received", "spam", "spam", "spam", "spam", "received"]);
    assert_eq!(verdicts[1].1, ["proof_of_work"]);
    assert_eq!(account.submissions(form).await[0], json!({"a": "posted"}), "the proof is not stored");
}

#[tokio::test]
async fn a_rejected_submission_does_not_consume_its_proof() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form_with(one_text_field(), |form| form.spam.proof_of_work = true).await;
    let proof = solve(&edge, form).await;
    let path = submit_path(form);
    edge.visitor.post(&path, &json!({"a": "", "form.proof": proof})).await.problem(400, "validation_failed");
    edge.visitor.post(&path, &json!({"a": "x", "form.proof": proof})).await;
    assert_eq!(verdicts(&edge, &account, form).await, [("received".to_owned(), Vec::<String>::new())]);
}
