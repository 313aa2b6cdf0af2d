//! What a submission caused, in words: a list of steps, each with an icon, and a delivery that can be sent again.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// A step of what happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EffectView {
    pub(super) tone: &'static str,
    pub(super) icon: &'static str,
    pub(super) text: String,
    pub(super) detail: String,
    /// When it happened.
    pub(super) at: Option<String>,
    /// When it is tried again.
    pub(super) next: Option<String>,
    /// The webhook and the delivery that can be sent again.
    pub(super) delivery: Option<[String; 2]>,
    /// What the receiver answered.
    pub(super) answer: Option<String>,
}

/// The names of webhooks, by their ids.
pub(super) type WebhookNames = BTreeMap<String, String>;

/// Returns the names that a list of webhooks gives.
pub(super) fn webhook_names(list: &Value) -> WebhookNames {
    let webhooks = list["webhooks"].as_array().map_or(&[][..], Vec::as_slice);
    let name = |webhook: &Value| {
        let text = |member: &str| webhook[member].as_str().filter(|text| !text.is_empty());
        let host = text("url").and_then(|url| url.split('/').nth(2)).unwrap_or("Webhook").to_owned();
        Some((text("id")?.to_owned(), text("description").map_or(host, str::to_owned)))
    };
    webhooks.iter().filter_map(name).collect()
}

/// Returns the steps that an answer to `submissions.read` tells of.
pub(super) fn steps(answer: &Value, names: &WebhookNames) -> Vec<EffectView> {
    let (submission, effects) = (&answer["data"], &answer["effects"]);
    let list = |member: &str| effects[member].as_array().map_or(&[][..], Vec::as_slice).iter();
    let mut steps = vec![received(submission)];
    steps.extend(entry(&effects["entry"], &submission["entryNote"]));
    // The API lists the newest deliveries first.
    steps.extend(list("deliveries").rev().map(|delivery| of_delivery(delivery, names)));
    steps.extend(mail(&effects["mail"]));
    steps.extend(list("runs").map(run));
    steps
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn step((tone, icon): (&'static str, &'static str), text: impl Into<String>) -> EffectView {
    EffectView { tone, icon, text: text.into(), ..EffectView::default() }
}

const GOOD: (&str, &str) = ("good", "done");
const AGAIN: (&str, &str) = ("warn", "retry");
const BAD: (&str, &str) = ("bad", "failed");
const NONE: (&str, &str) = ("", "close");

fn received(submission: &Value) -> EffectView {
    let is_spam = submission["status"] == "spam";
    let (tone, text) =
        if is_spam { (("warn", "spam"), "Held back as spam") } else { (GOOD, "Received and stored") };
    EffectView { at: text_of(&submission["createdAt"]), ..step(tone, text) }
}

fn entry(entry: &Value, note: &Value) -> Option<EffectView> {
    if entry.is_object() {
        let text = if entry["isArchived"] == true {
            "An entry was made; its page was deleted since"
        } else {
            "An entry was made on the page"
        };
        return Some(EffectView { at: text_of(&entry["createdAt"]), ..step(GOOD, text) });
    }
    let why = match note.as_str()? {
        "page_gone" => "the page was deleted",
        "page_full" => "the page has all the entries it takes",
        "no_template" => "the page has no template for entries",
        "too_large" => "it would be too large",
        other => other,
    };
    Some(EffectView { detail: why.to_owned(), ..step(BAD, "No entry was made") })
}

fn of_delivery(delivery: &Value, names: &WebhookNames) -> EffectView {
    let text = |member: &str| text_of(&delivery[member]);
    let attempts = delivery["attempts"].as_i64().unwrap_or_default();
    let status = delivery["status"].as_str().unwrap_or_default();
    let (look, state) = match status {
        "delivered" => (GOOD, "delivered"),
        "failed" => (BAD, "failed"),
        "canceled" => (NONE, "canceled"),
        _ if attempts > 0 => (AGAIN, "tries again"),
        _ => (("", "retry"), "waiting"),
    };
    let webhook = text("webhookId").unwrap_or_default();
    let name = names.get(&webhook).map_or("Webhook", String::as_str);
    let mut details = Vec::new();
    details.extend(delivery["statusCode"].as_i64().map(|code| format!("answered {code}")));
    details.extend(text("error").filter(|error| error != "http_status"));
    details.extend(delivery["responseTimeMs"].as_i64().map(|time| format!("{time} ms")));
    if attempts > 1 {
        details.push(format!("{attempts} attempts"));
    }
    EffectView {
        detail: details.join(" · "),
        at: text("attemptedAt").or_else(|| text("createdAt")),
        next: text("nextAttemptAt").filter(|_| status == "pending"),
        delivery: (status != "delivered").then(|| [webhook.clone(), text("id").unwrap_or_default()]),
        answer: text("responseBody").filter(|body| !body.is_empty()),
        ..step(look, format!("{name}: {state}"))
    }
}

fn mail(mail: &Value) -> Option<EffectView> {
    let (look, text) = match mail["status"].as_str()? {
        "sent" => (GOOD, "Mail sent"),
        "failed" => (BAD, "Mail given up"),
        "skipped" => (NONE, "No mail: its recipient has not agreed, or had enough mails this hour"),
        _ => (AGAIN, "Mail waiting"),
    };
    let next = text_of(&mail["nextAttemptAt"]);
    Some(EffectView { at: text_of(&mail["finishedAt"]), next, ..step(look, text) })
}

fn run(run: &Value) -> EffectView {
    let (look, state) = match run["status"].as_str().unwrap_or_default() {
        "success" => (GOOD, "done"),
        "error" => (BAD, "failed"),
        "cancelled" => (NONE, "canceled"),
        "skipped" => (NONE, "skipped"),
        "waiting" => (AGAIN, "waiting"),
        "running" => (AGAIN, "running"),
        _ => (AGAIN, "queued"),
    };
    let name = run["automationName"].as_str().unwrap_or("Automation");
    let again = if run["isReplay"] == true { ", repeated" } else { "" };
    let at = text_of(&run["finishedAt"]).or_else(|| text_of(&run["createdAt"]));
    EffectView { at, ..step(look, format!("{name}{again}: {state}")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn says_what_happened_in_its_order_and_what_can_be_sent_again() {
        let list = json!({ "webhooks": [{ "id": "w1", "url": "https://crm.example/hook?token=x", "description": null },
            { "id": "w2", "url": "https://chat.example/x", "description": "Chat" }] });
        let names = webhook_names(&list);
        let answer = json!({
            "data": { "status": "received", "createdAt": "2026-11-22T13:02:11Z", "entryNote": "page_full" },
            "effects": { "entry": null, "mail": { "status": "sent", "finishedAt": "2026-11-22T13:02:15Z" },
                "deliveries": [
                    { "id": "d2", "webhookId": "w1", "status": "pending", "attempts": 2, "statusCode": 503,
                      "error": "http_status", "nextAttemptAt": "2026-11-22T13:30:00Z", "responseBody": "<b>" },
                    { "id": "d1", "webhookId": "w2", "status": "delivered", "attempts": 1, "statusCode": 200,
                      "responseTimeMs": 212 }],
                "runs": [{ "automationName": "Greet", "status": "error", "isReplay": true }] } });
        let steps = steps(&answer, &names);
        let texts: Vec<_> =
            steps.iter().map(|step| (step.icon, step.text.as_str(), step.detail.as_str())).collect();
        let expected = [
            ("done", "Received and stored", ""),
            ("failed", "No entry was made", "the page has all the entries it takes"),
            ("done", "Chat: delivered", "answered 200 · 212 ms"),
            ("retry", "crm.example: tries again", "answered 503 · 2 attempts"),
            ("done", "Mail sent", ""),
            ("failed", "Greet, repeated: failed", ""),
        ];
        assert_eq!(texts, expected);
        let deliveries: Vec<_> = steps.iter().filter_map(|step| step.delivery.clone()).collect();
        assert_eq!(deliveries, [["w1".to_owned(), "d2".to_owned()]]);
        assert_eq!(steps[3].next.as_deref(), Some("2026-11-22T13:30:00Z"));
    }

    #[test]
    fn spam_went_nowhere() {
        let answer = json!({ "data": { "status": "spam" }, "effects": {} });
        let steps = steps(&answer, &WebhookNames::new());
        assert_eq!((steps.len(), steps[0].text.as_str()), (1, "Held back as spam"));
    }
}
