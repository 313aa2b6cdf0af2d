//! Google Chat webhooks: a card in a message of at most 32,000 bytes.

use serde_json::{Value, json};

use super::fit::{most_that_fit, omitted_fields};
use super::notice::Notice;
use super::truncate::{entity, truncate, truncate_escaped};
use crate::webhooks::{ReceiverResponse, Verdict};

/// Below the limit, because Google counts its own representation of the message.
const BODY_MAX_BYTES: usize = 30_000;
const TITLE_MAX: usize = 200;
const NAME_MAX: usize = 200;
const VALUE_MAX: usize = 3_000;
/// A section shows 100.
const WIDGETS_MAX: usize = 95;

/// Returns the message.
pub fn body(notice: &Notice) -> Value {
    let most = notice.fields.len().min(WIDGETS_MAX);
    most_that_fit(most, BODY_MAX_BYTES, |shown| with_fields(notice, shown))
}

fn with_fields(notice: &Notice, shown: usize) -> Value {
    let paragraph =
        |text: &str| json!({"textParagraph": {"text": truncate_escaped(text, VALUE_MAX, entity)}});
    let mut widgets: Vec<Value> = notice.text.as_deref().map(paragraph).into_iter().collect();
    widgets.extend(notice.fields.iter().take(shown).map(|(name, value)| {
        json!({"decoratedText": {
            "topLabel": truncate_escaped(name, NAME_MAX, entity),
            "text": truncate_escaped(value, VALUE_MAX, entity),
            "wrapText": true,
        }})
    }));
    widgets.extend(omitted_fields(notice.fields.len() - shown).as_deref().map(paragraph));
    let title = truncate(&notice.title, TITLE_MAX);
    let mut card = json!({"header": {"title": title}});
    if notice.at.is_some() {
        card["header"]["subtitle"] = json!(notice.when());
    }
    if !widgets.is_empty() {
        card["sections"] = json!([{"widgets": widgets}]);
    }
    // The text beside the card is parsed as a message, in which `<users/all>` would mention all users.
    json!({"text": unaddressed(&title), "cardsV2": [{"cardId": "event", "card": card}]})
}

fn unaddressed(text: &str) -> String {
    text.replace('<', "‹").replace('>', "›")
}

/// Responses that reject the URL itself are final.
pub(crate) fn classify(response: &ReceiverResponse<'_>) -> Verdict {
    match response.status {
        400 | 413 => Verdict::GiveUp,
        401 | 403 | 404 | 410 => Verdict::Gone,
        _ => response.classify_by_status(),
    }
}
