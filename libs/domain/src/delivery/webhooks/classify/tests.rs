//! Tests with responses that the platforms document.

use std::time::Duration;

use super::*;

fn verdict(template: Template, status: u16, body: &str) -> Verdict {
    classify_response(template, &ReceiverResponse { status, retry_after: None, body: body.as_bytes() })
}

fn after(seconds: f64) -> Verdict {
    Verdict::Retry(Some(Duration::from_secs_f64(seconds)))
}

#[test]
fn a_default_receiver_accepts_by_2xx_and_is_gone_by_410() {
    for status in [200, 201, 204, 299] {
        assert_eq!(verdict(Template::Default, status, ""), Verdict::Delivered);
    }
    for status in [300, 302, 400, 401, 404, 409, 429, 500, 503] {
        assert_eq!(verdict(Template::Default, status, ""), Verdict::Retry(None), "{status}");
    }
    assert_eq!(verdict(Template::Default, 410, ""), Verdict::Gone);
    let response = ReceiverResponse { status: 503, retry_after: Some(Duration::from_secs(9)), body: b"" };
    assert_eq!(classify_response(Template::Default, &response), after(9.0));
}

#[test]
fn slack_gives_up_messages_it_never_accepts_and_loses_deleted_channels() {
    assert_eq!(verdict(Template::Slack, 200, "ok"), Verdict::Delivered);
    assert_eq!(verdict(Template::Slack, 400, "invalid_payload"), Verdict::GiveUp);
    assert_eq!(verdict(Template::Slack, 403, "action_prohibited"), Verdict::GiveUp);
    assert_eq!(verdict(Template::Slack, 404, "no_service"), Verdict::Gone);
    assert_eq!(verdict(Template::Slack, 410, "channel_is_archived"), Verdict::Gone);
    assert_eq!(verdict(Template::Slack, 500, "rollup_error"), Verdict::Retry(None));
    assert_eq!(verdict(Template::Slack, 429, ""), Verdict::Retry(None));
}

#[test]
fn discord_has_the_delay_in_the_body() {
    let limited = r#"{"message": "You are being rate limited.", "retry_after": 0.65, "global": false}"#;
    assert_eq!(verdict(Template::Discord, 429, limited), after(0.65));
    let header = ReceiverResponse { status: 429, retry_after: Some(Duration::from_secs(2)), body: b"<html>" };
    assert_eq!(classify_response(Template::Discord, &header), after(2.0));
    assert_eq!(verdict(Template::Discord, 204, ""), Verdict::Delivered);
    assert_eq!(verdict(Template::Discord, 404, r#"{"code": 10015}"#), Verdict::Gone);
    assert_eq!(verdict(Template::Discord, 401, ""), Verdict::Gone);
    assert_eq!(verdict(Template::Discord, 400, r#"{"embeds": ["0"]}"#), Verdict::GiveUp);
    assert_eq!(verdict(Template::Discord, 502, ""), Verdict::Retry(None));
}

#[test]
fn telegrams_body_decides() {
    let verdict = |status, body: &str| verdict(Template::Telegram, status, body);
    assert_eq!(verdict(200, r#"{"ok": true, "result": {}}"#), Verdict::Delivered);
    let limited = r#"{"ok": false, "error_code": 429, "parameters": {"retry_after": 35}}"#;
    assert_eq!(verdict(429, limited), after(35.0));
    let moved =
        r#"{"ok": false, "error_code": 400, "parameters": {"migrate_to_chat_id": -1001234567890123}}"#;
    assert_eq!(verdict(400, moved), Verdict::Moved { chat_id: "-1001234567890123".to_owned() });
    assert_eq!(verdict(400, r#"{"ok": false, "error_code": 400}"#), Verdict::GiveUp);
    for code in [401, 403, 404] {
        let body = format!(r#"{{"ok": false, "error_code": {code}}}"#);
        assert_eq!(verdict(code, &body), Verdict::Gone);
        // A proxy in between may change the status.
        assert_eq!(verdict(200, &body), Verdict::Gone);
    }
    assert_eq!(verdict(502, "<html>"), Verdict::Retry(None));
    assert_eq!(verdict(200, r#"{"ok": false}"#), Verdict::Retry(None));
}

#[test]
fn teams_accepts_by_202_and_hides_errors_behind_200() {
    let verdict = |status, body: &str| verdict(Template::Teams, status, body);
    assert_eq!(verdict(202, ""), Verdict::Delivered);
    let hidden =
        "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429 with";
    assert_eq!(verdict(200, hidden), Verdict::Retry(None));
    assert_eq!(verdict(404, r#"{"error": {"code": "WorkflowNotFound"}}"#), Verdict::Gone);
    assert_eq!(verdict(401, ""), Verdict::GiveUp);
    assert_eq!(verdict(429, ""), Verdict::Retry(None));
}

#[test]
fn google_chat_rejects_deleted_urls() {
    let verdict = |status| verdict(Template::GoogleChat, status, "");
    assert_eq!((verdict(200), verdict(400)), (Verdict::Delivered, Verdict::GiveUp));
    assert_eq!((verdict(403), verdict(404)), (Verdict::Gone, Verdict::Gone));
    assert_eq!((verdict(429), verdict(503)), (Verdict::Retry(None), Verdict::Retry(None)));
}

#[test]
fn impossible_delays_are_ignored() {
    for odd in ["-1", "1e400", "\"soon\"", "null"] {
        let body = format!(r#"{{"retry_after": {odd}}}"#);
        assert_eq!(verdict(Template::Discord, 429, &body), Verdict::Retry(None), "{odd}");
    }
}
