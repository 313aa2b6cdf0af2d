//! What one stranger can make an account pay: submissions from one address are limited, and chains of deliveries end.

use http::{Method, StatusCode};
use serde_json::json;
use store::submissions::SubmissionFilter;
use uuid::Uuid;

use crate::client::TestResponse;
use crate::fixtures::{Account, one_text_field, submit_path};
use crate::harness::Edge;

const BEHIND_A_PROXY: &str = "http.trusted_proxies=[\"127.0.0.0/8\"]";

/// Submits from an address.
async fn submit_from(edge: &Edge, form: Uuid, address: &str) -> TestResponse {
    let headers = [("content-type", "application/json"), ("x-forwarded-for", address)];
    edge.visitor.send(Method::POST, "localhost", &submit_path(form), &headers, r#"{"a":"x"}"#).await
}

/// Numbers of submissions that are received, and that are spam because of their rate.
async fn received_and_limited(edge: &Edge, account: &Account<'_>, form: Uuid) -> (usize, usize) {
    let mut tx = store::begin(&edge.database.db).await.unwrap();
    let filter = SubmissionFilter { limit: 5_000, ..SubmissionFilter::default() };
    let page = store::submissions::list_submissions(&mut tx, account.id, form, &filter).await.unwrap();
    let rows = page.rows;
    let limited =
        rows.iter().filter(|row| row.status.as_str() == "spam" && row.spam_reasons == ["rate"]).count();
    let received = rows.iter().filter(|row| row.status.as_str() == "received").count();
    assert_eq!(rows.len(), received + limited);
    (received, limited)
}

#[tokio::test]
async fn one_address_can_not_fill_a_form() {
    let edge = Edge::with(&["forms.max_submissions_per_day=5", BEHIND_A_PROXY]).await;
    let account = edge.account("quiet-otter").await;
    let webhook = account.webhook(None, &[]).await;
    for (max_submissions, plan) in [(Some(8), "free"), (None, "scale")] {
        edge.run(&format!("update accounts set plan = '{plan}' where id = '{}'", account.id)).await;
        edge.run("delete from deliveries").await;
        let form = account.form_with(one_text_field(), |form| form.max_submissions = max_submissions).await;
        for _ in 0..20 {
            let response = submit_from(&edge, form, "192.0.2.1").await;
            assert_eq!(response.status, StatusCode::CREATED, "{}", response.text());
        }
        assert_eq!(received_and_limited(&edge, &account, form).await, (5, 15));
        assert_eq!(account.count(form).await, 5, "they don't count toward the form's limit");
        assert_eq!(account.deliveries(webhook).await.len(), 5, "they trigger no webhook");
        for address in ["192.0.2.2", "2001:db8::1"] {
            assert_eq!(submit_from(&edge, form, address).await.status, StatusCode::CREATED);
        }
        assert_eq!(account.count(form).await, 7, "other addresses are not limited");
    }
}

#[tokio::test]
async fn the_addresses_of_one_ipv6_network_are_limited_together() {
    let edge = Edge::with(&["forms.max_submissions_per_day=2", BEHIND_A_PROXY]).await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    for host in 0..6 {
        submit_from(&edge, form, &format!("2001:db8:1:1:{host}::{host}")).await;
    }
    assert_eq!(received_and_limited(&edge, &account, form).await, (2, 4));
    submit_from(&edge, form, "2001:db8:1:2::1").await;
    assert_eq!(received_and_limited(&edge, &account, form).await, (3, 4));
}

#[tokio::test]
async fn a_forms_own_limits_override_the_settings() {
    let edge = Edge::with(&["forms.max_submissions_per_day=1"]).await;
    let account = edge.account("quiet-otter").await;
    let unlimited = account.form_with(one_text_field(), |form| form.spam.per_day = Some(0)).await;
    let strict = account.form_with(one_text_field(), |form| form.spam.per_day = Some(2)).await;
    for form in [unlimited, strict] {
        for _ in 0..4 {
            assert_eq!(submit_from(&edge, form, "").await.status, StatusCode::CREATED);
        }
    }
    assert_eq!(received_and_limited(&edge, &account, unlimited).await, (4, 0));
    assert_eq!(received_and_limited(&edge, &account, strict).await, (2, 2));
}

#[tokio::test]
async fn a_flood_of_a_form_is_refused_after_a_thousand_stored_submissions() {
    let edge = Edge::with(&["forms.max_submissions_per_day=1", BEHIND_A_PROXY]).await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    edge.run(&format!(
        "insert into submissions (id, account_id, form_id, payload, status, spam_reasons, created_at, updated_at)
         select gen_random_uuid(), '{}', '{form}', '{{}}', 'spam', '{{rate}}', now(), now() from generate_series(1, 999)",
        account.id
    ))
    .await;
    for _ in 0..2 {
        assert_eq!(submit_from(&edge, form, "192.0.2.1").await.status, StatusCode::CREATED);
    }
    assert_eq!(received_and_limited(&edge, &account, form).await, (1, 1_000));
    for _ in 0..3 {
        let refused = submit_from(&edge, form, "192.0.2.1").await;
        refused.problem(429, "rate_limited");
        let retry_after: u64 = refused.header("retry-after").parse().unwrap();
        assert!((1..=86_400).contains(&retry_after), "until the day ends: {retry_after}");
    }
    assert_eq!(received_and_limited(&edge, &account, form).await, (1, 1_000));
    assert_eq!(submit_from(&edge, form, "192.0.2.2").await.status, StatusCode::CREATED);
    assert_eq!(account.count(form).await, 2, "an address within its limit is not refused");
}

#[tokio::test]
async fn webhooks_that_post_to_their_own_submit_address_end_after_five_deliveries() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    for (plan, path) in [("free", "own transaction"), ("scale", "group commit")] {
        edge.run(&format!("update accounts set plan = '{plan}' where id = '{}'", account.id)).await;
        let form = account.form(one_text_field()).await;
        account.webhook(Some(vec![form]), &[]).await;
        let mut depth = 0;
        loop {
            let value = depth.to_string();
            let headers = [("content-type", "application/json"), ("webruntime-depth", value.as_str())];
            let response = edge
                .visitor
                .send(Method::POST, "localhost", &submit_path(form), &headers, r#"{"a":"x"}"#)
                .await;
            if response.status != StatusCode::CREATED {
                response.problem(508, "loop_detected");
                break;
            }
            // The delivery that the receiver, which is the form itself, would get next.
            depth += 1;
            let stored = format!(
                "do $$ begin assert (select max(depth) from deliveries d join submissions s on s.id = d.submission_id
                                     where s.form_id = '{form}') = {depth}; end $$"
            );
            edge.run(&stored).await;
        }
        assert_eq!((depth, account.count(form).await), (5, 5), "{path}");
    }
}

#[tokio::test]
async fn a_second_or_malformed_depth_header_does_not_hide_a_loop() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let path = submit_path(form);
    let json = ("content-type", "application/json");
    for depths in [["5", "0"], ["x", "99999999999"], ["7", ""]] {
        let headers = [json, ("webruntime-depth", depths[0]), ("webruntime-depth", depths[1])];
        let response = edge.visitor.send(Method::POST, "localhost", &path, &headers, r#"{"a":"x"}"#).await;
        response.problem(508, "loop_detected");
    }
    assert_eq!(edge.visitor.post(&path, &json!({"a": "x"})).await.status, StatusCode::CREATED);
    assert_eq!(account.count(form).await, 1);
}
