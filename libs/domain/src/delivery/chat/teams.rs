//! Microsoft Teams by Workflows ("When a Teams webhook request is received"): an Adaptive Card.
//!
//! The flow fails above some 28 KB of its own counting, so the body is limited to 20,000 bytes. A 202 means that the
//! flow has started; only its own history shows whether the card was posted.

use serde_json::{Value, json};

use super::fit::{most_that_fit, omitted_fields};
use super::notice::Notice;
use super::truncate::{truncate, truncate_escaped};
use crate::webhooks::{ReceiverResponse, Verdict};

const BODY_MAX_BYTES: usize = 20_000;
const TITLE_MAX: usize = 300;
const NAME_MAX: usize = 200;
const VALUE_MAX: usize = 2_000;

/// Text of an error that retired connectors return with a 200.
const HIDDEN_ERROR: &str = "returned HTTP error ";

/// Returns the message.
pub fn body(notice: &Notice) -> Value {
    most_that_fit(notice.fields.len(), BODY_MAX_BYTES, |shown| with_fields(notice, shown))
}

fn with_fields(notice: &Notice, shown: usize) -> Value {
    let block = |text: &str| json!({"type": "TextBlock", "text": text, "wrap": true});
    let safe = |text: &str, max| truncate_escaped(text, max, mark);
    let mut title = block(&safe(&notice.title, TITLE_MAX));
    title["weight"] = json!("Bolder");
    title["size"] = json!("Medium");
    let mut parts = vec![title];
    parts.extend(notice.text.as_deref().map(|text| block(&safe(text, VALUE_MAX))));
    let fact = |(name, value): &(String, String)| json!({"title": truncate(name, NAME_MAX), "value": safe(value, VALUE_MAX)});
    let facts: Vec<Value> = notice.fields.iter().take(shown).map(fact).collect();
    if !facts.is_empty() {
        parts.push(json!({"type": "FactSet", "facts": facts}));
    }
    let last: Vec<String> = omitted_fields(notice.fields.len() - shown)
        .into_iter()
        .chain(notice.at.map(|_| notice.when()))
        .collect();
    if !last.is_empty() {
        let mut end = block(&last.join(" · "));
        end["isSubtle"] = json!(true);
        end["size"] = json!("Small");
        parts.push(end);
    }
    let card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": parts,
    });
    let content = "application/vnd.microsoft.card.adaptive";
    json!({"type": "message", "attachments": [{"contentType": content, "contentUrl": null, "content": card}]})
}

/// Escapes Markdown, which cards interpret.
fn mark(letter: char) -> Option<&'static str> {
    match letter {
        '\\' => Some(r"\\"),
        '*' => Some(r"\*"),
        '_' => Some(r"\_"),
        '[' => Some(r"\["),
        ']' => Some(r"\]"),
        _ => None,
    }
}

/// Returns whether the host belongs to the connectors that Microsoft retired in 2026.
pub fn is_retired(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "outlook.office.com" || host == "webhook.office.com" || host.ends_with(".webhook.office.com")
}

/// A deleted flow is not found; one that rejects our signature or body will do so again.
pub(crate) fn classify(response: &ReceiverResponse<'_>) -> Verdict {
    let text = String::from_utf8_lossy(response.body);
    let hidden = text.split_once(HIDDEN_ERROR).and_then(|(_, rest)| rest.get(..3)?.parse().ok());
    match hidden.unwrap_or(response.status) {
        404 | 410 => Verdict::Gone,
        400 | 401 | 403 | 413 => Verdict::GiveUp,
        200..300 => Verdict::Delivered,
        _ => Verdict::Retry(response.retry_after),
    }
}
