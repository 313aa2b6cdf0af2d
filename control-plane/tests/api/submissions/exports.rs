//! Exports: CSV of any length that spreadsheets read and never execute.

use std::time::Duration;

use axum::body::Body;
use domain::plans::Plan;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::Api;
use crate::submissions::list::{fields, form, insert_submission};

async fn request_export(api: &Api, key: &str, form: Uuid) -> axum::response::Response {
    let request = Request::builder()
        .uri(format!("/api/forms/{form}/export"))
        .header("authorization", format!("Bearer {key}"))
        .body(Body::empty())
        .unwrap();
    api.raw_response(request).await
}

async fn export(api: &Api, key: &str, form: Uuid) -> String {
    let response = request_export(api, key, form).await;
    assert_eq!(response.status(), StatusCode::OK);
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn answers_are_in_their_columns_and_formulas_are_escaped() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let form = form(&api, &key, fields()).await;
    let at = "2027-01-30T10:00:00.5Z";
    let rows = [
        json!({"note": "say \"hi\",\nplease", "age": -3.5, "size": "L", "days": ["Mon", "Tue"], "email": "a@b.co"}),
        json!({"note": "=1+1", "age": 12, "gone": "=x"}),
        json!({"note": "+49", "days": ["@x"]}),
        json!({"note": "-1", "age": "-1"}),
        json!({"note": "@cmd"}),
        json!({"note": "\tx"}),
        json!({"note": "\rx"}),
        json!({"note": "ü 日本 a=b"}),
        json!({"note": "＝1+1"}),
        json!({"note": "＋1"}),
        json!({"note": "－1", "days": ["＠x"]}),
    ];
    let mut ids = Vec::new();
    for row in &rows {
        ids.push(insert_submission(&api, form, at, "received", row).await);
    }
    insert_submission(&api, form, at, "spam", &json!({"note": "buy"})).await;
    ids.push(insert_submission(&api, form, at, "archived", &json!({"note": "put aside"})).await);
    let set = r#"external_id = '=a', extra = '{"utm": "=x"}'"#;
    api.execute(&format!("update submissions set {set} where payload ->> 'note' = 'put aside'"))
        .await
        .unwrap();

    let lines = [
        r#""received","","a@b.co","say ""hi"",
please","-3.5","L","Mon; Tue","","""#,
        r#""received","","","'=1+1","12","","","{""gone"": ""=x""}","""#,
        r#""received","","","'+49","","","'@x","","""#,
        r#""received","","","'-1","'-1","","","","""#,
        r#""received","","","'@cmd","","","","","""#,
        "\"received\",\"\",\"\",\"'\tx\",\"\",\"\",\"\",\"\",\"\"",
        "\"received\",\"\",\"\",\"'\rx\",\"\",\"\",\"\",\"\",\"\"",
        r#""received","","","ü 日本 a=b","","","","","""#,
        r#""received","","","'＝1+1","","","","","""#,
        r#""received","","","'＋1","","","","","""#,
        r#""received","","","'－1","","","'＠x","","""#,
        r#""archived","'=a","","put aside","","","","","{""utm"": ""=x""}""#,
    ];
    let columns = "id,submittedAt,status,externalId,email,note,age,size,days,otherAnswers,extraAnswers";
    let mut expected = format!("\"{}\"\n", columns.replace(',', "\",\""));
    for (id, line) in ids.iter().zip(lines) {
        expected += &format!("\"{id}\",\"2027-01-30T10:00:00.500Z\",{line}\n");
    }
    assert_eq!(export(&api, &key, form).await, expected);

    let archived = format!("/api/forms/{form}/submissions?status=archived");
    let (_, listed) = api.send(Method::GET, &archived, Some(&key), &Value::Null).await;
    let listed = &listed["submissions"][0];
    assert_eq!(
        (&listed["payload"], &listed["extra"]),
        (&json!({"note": "put aside"}), &json!({"utm": "=x"}))
    );
    let received = format!("/api/forms/{form}/submissions");
    let (_, listed) = api.send(Method::GET, &received, Some(&key), &Value::Null).await;
    assert!(listed["submissions"][0].get("extra").is_none(), "{listed}");

    let headers = request_export(&api, &key, form).await.headers().clone();
    assert_eq!(headers["content-type"], "text/csv; charset=utf-8; header=present");
    let disposition = headers["content-disposition"].to_str().unwrap();
    assert!(disposition.starts_with("attachment; filename=\"contact-submissions-"), "{disposition}");
}

#[tokio::test]
async fn an_empty_export_has_an_escaped_header() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Scale).await;
    let form = form(&api, &key, json!([{"name": "-a", "label": "A", "type": "text"}])).await;
    assert_eq!(
        export(&api, &key, form).await,
        "\"id\",\"submittedAt\",\"status\",\"externalId\",\"'-a\",\"otherAnswers\",\"extraAnswers\"\n"
    );
    // No two columns have one name.
    for (name, last) in [("extra", "extraAnswers"), ("extraAnswers", "extraAnswers2")] {
        let form = self::form(&api, &key, json!([{"name": name, "label": "A", "type": "text"}])).await;
        let expected = format!(
            "\"id\",\"submittedAt\",\"status\",\"externalId\",\"{name}\",\"otherAnswers\",\"{last}\"\n"
        );
        assert_eq!(export(&api, &key, form).await, expected);
    }
}

#[tokio::test]
async fn the_free_plan_rejects_exports() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let form = form(&api, &key, fields()).await;
    let (status, problem) =
        api.send(Method::GET, &format!("/api/forms/{form}/export"), Some(&key), &Value::Null).await;
    assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("plan_restricted")), "{problem}");
    assert_eq!(problem["upgradeUrl"], "/api/account/upgrade");
}

/// Inserts more submissions than all buffers between Postgres and the client hold.
async fn insert_submissions(api: &Api, form: Uuid) {
    let statement = format!(
        "insert into submissions (id, account_id, form_id, payload, created_at, updated_at)
         select gen_random_uuid(), account_id, f.id, jsonb_build_object('note', repeat('x', 1000)), now(), now()
         from forms f, generate_series(1, 30000) where f.id = '{form}'"
    );
    api.execute(&statement).await.unwrap();
}

/// Waits until Postgres runs no export.
async fn until_no_export_runs(api: &Api) {
    let exporting = "do $$ begin
        perform from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and query like 'copy (select %';
        if found then raise 'an export is running'; end if; end $$";
    let wait = async {
        while api.execute(exporting).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap();
}

#[tokio::test]
async fn a_disconnected_or_stalled_client_ends_the_export() {
    let api = Api::start(&["exports.stall_timeout=200ms", "exports.max_concurrent=1"]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let form = form(&api, &key, fields()).await;
    insert_submissions(&api, form).await;
    let mut body = request_export(&api, &key, form).await.into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    until_no_export_runs(&api).await;

    let response = request_export(&api, &key, form).await;
    until_no_export_runs(&api).await;
    let truncated = response.into_body().collect().await;
    assert!(truncated.is_err(), "the client can tell that the file is incomplete");
    let lines = export(&api, &key, form).await.lines().count();
    assert_eq!(lines, 30_001, "the only permit is free again, and the file is complete");
}

#[tokio::test]
async fn exports_beyond_the_limit_get_503_with_retry_after() {
    let api = Api::start(&["exports.queue_timeout=20ms", "exports.max_concurrent=0"]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let form = form(&api, &key, fields()).await;
    let response = request_export(&api, &key, form).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().contains_key("retry-after"));
}

#[tokio::test]
async fn an_account_at_its_export_limit_does_not_block_others() {
    let api = Api::start(&["exports.max_concurrent=2", "exports.max_concurrent_per_account=1"]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let large = form(&api, &key, fields()).await;
    insert_submissions(&api, large).await;
    let slow = request_export(&api, &key, large).await;
    assert_eq!(slow.status(), StatusCode::OK);
    let second = request_export(&api, &key, large).await;
    assert_eq!(second.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(second.headers().contains_key("retry-after"));
    let (other, _) = api.trial_on(Plan::Pro).await;
    let other_form = form(&api, &other, fields()).await;
    assert_eq!(export(&api, &other, other_form).await.lines().count(), 1);
    drop(slow);
    until_no_export_runs(&api).await;
    let again = async {
        while request_export(&api, &key, large).await.status() != StatusCode::OK {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), again).await.unwrap();
}

#[tokio::test]
async fn an_export_ends_at_its_timeout_even_while_it_is_read() {
    let api = Api::start(&["exports.timeout=3s"]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let form = form(&api, &key, fields()).await;
    insert_submissions(&api, form).await;
    // An export that times out before its first byte returns a problem instead of a file.
    let started = async {
        loop {
            let response = request_export(&api, &key, form).await;
            if response.status() == StatusCode::OK {
                return response.into_body();
            }
        }
    };
    let body = tokio::time::timeout(Duration::from_secs(60), started).await.unwrap();
    until_no_export_runs(&api).await;
    assert!(body.collect().await.is_err());
}
