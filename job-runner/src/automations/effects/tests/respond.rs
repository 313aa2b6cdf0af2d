//! `respond`.

use automation::execution::Effect;
use contract::Signal;
use serde_json::{Value, json};

use super::fixture::{Fixture, call, call_at, failure, object};
use crate::automations::effects::perform;

fn respond(status: u16, headers: Value, body: Option<Value>) -> Effect {
    Effect::Respond { status, headers: object(headers), body }
}

#[tokio::test]
async fn an_answer_is_stored_and_announced_and_only_the_first() {
    let fixture = Fixture::new().await;
    for trigger in ["http", "test"] {
        let context = fixture.run_of(trigger, 0).await;
        let answer = respond(201, json!({"X-A": "1"}), Some(json!({"ok": true})));
        let output = perform(&context, call(answer.clone())).await.unwrap();
        assert_eq!(output, json!({"status": 201, "headers": {"X-A": "1"}, "body": {"ok": true}}));
        let run_id = context.claim.run_id;
        assert_eq!(fixture.signals().await, [Signal::RunsAnswered { run_ids: vec![run_id] }]);
        let mut conn = store::acquire(&fixture.database.db).await.unwrap();
        let answered = store::automations::find_answered(&mut conn, &[run_id]).await.unwrap();
        assert_eq!(answered[0].2, Some(output.clone()));
        let second = failure(perform(&context, call_at("again", respond(500, json!({}), None))).await);
        assert!(second.message.contains("already answered") && !second.is_transient, "{second:?}");
        let answered = store::automations::find_answered(&mut conn, &[run_id]).await.unwrap();
        assert_eq!(answered[0].2, Some(output));
        assert_eq!(fixture.signals().await, []);
    }
}

#[tokio::test]
async fn a_run_without_a_request_can_not_answer() {
    let fixture = Fixture::new().await;
    for trigger in ["form_submission", "schedule"] {
        let context = fixture.run_of(trigger, 0).await;
        let failed = failure(perform(&context, call(respond(200, json!({}), None))).await);
        assert!(failed.message.contains("only runs of http triggers"), "{failed:?}");
    }
    assert_eq!(fixture.number("select count(*) from automation_runs where response is not null").await, 0);
}

#[tokio::test]
async fn headers_that_split_the_answer_or_are_not_allowed_are_refused() {
    let fixture = Fixture::new().await;
    for (status, headers, body, expected) in [
        (200, json!({"X-A": "1\r\nSet-Cookie: a=b"}), None, "headers.X-A: the value"),
        (200, json!({"X-A": "1\n"}), None, "headers.X-A: the value"),
        (200, json!({"Set-Cookie": "a=b"}), None, "headers.Set-Cookie: an answer may not"),
        (200, json!({"Location": "/x"}), None, "headers.Location"),
        (200, json!({"X-A": "x".repeat(9 << 10)}), None, "at most 8 KB"),
        (200, json!({}), Some(json!("x".repeat((1 << 20) + 1))), "at most 1 MB"),
    ] {
        let failed = fixture.failure(respond(status, headers, body)).await;
        assert!(failed.message.contains(expected) && !failed.message.contains("a=b"), "{failed:?}");
    }
    fixture.perform(respond(302, json!({"Location": "https://example.com"}), None)).await.unwrap();
}
