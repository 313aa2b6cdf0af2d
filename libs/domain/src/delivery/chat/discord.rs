//! Discord webhooks: one embed.
//!
//! Limits: 25 fields, 256 characters of title and name, 1,024 of a value, none of them empty, and 6,000 in all.

use serde_json::{Value, json};

use super::fit::{EMPTY, omitted_fields};
use super::notice::Notice;
use super::truncate::{length, truncate};
use crate::webhooks::{ReceiverResponse, Verdict};

const TITLE_MAX: usize = 256;
const TEXT_MAX: usize = 1_000;
const NAME_MAX: usize = 256;
const VALUE_MAX: usize = 1_024;
const FIELDS_MAX: usize = 25;
const TOTAL_MAX: usize = 6_000;
/// Reserved for the line that counts omitted fields.
const FOOTER_MAX: usize = 64;
/// Fields with a shorter value share a line.
const SHORT: usize = 40;
const COLOUR: u32 = 0x58_65f2;

/// Returns the message. Mentions are disabled, whatever a visitor types.
pub fn body(notice: &Notice) -> Value {
    let title = truncate(&plain(&notice.title), TITLE_MAX);
    let text = notice.text.as_deref().map(|text| truncate(&plain(text), TEXT_MAX));
    let mut room = TOTAL_MAX - FOOTER_MAX - length(&title) - text.as_deref().map_or(0, length);
    let mut fields = Vec::new();
    for (name, value) in notice.fields.iter().take(FIELDS_MAX) {
        let (name, value) = (truncate(&plain(name), NAME_MAX), truncate(&plain(value), VALUE_MAX));
        let name = if name.trim().is_empty() { EMPTY.to_owned() } else { name };
        let Some(less) = room.checked_sub(length(&name) + length(&value)) else { break };
        room = less;
        fields.push(json!({"name": name, "value": value, "inline": length(&value) < SHORT}));
    }
    let rest = omitted_fields(notice.fields.len() - fields.len());
    let mut embed = json!({"title": title, "color": COLOUR, "fields": fields});
    let texts = [("description", text.map(Value::from)), ("footer", rest.map(|text| json!({"text": text})))];
    let at = notice.at.map(|at| json!(at.to_rfc3339()));
    for (member, value) in texts.into_iter().chain([("timestamp", at)]) {
        if let Some(value) = value {
            embed[member] = value;
        }
    }
    json!({"embeds": [embed], "allowed_mentions": {"parse": []}})
}

/// Returns `text` with its Markdown escaped: nothing becomes bold, a quote or a disguised link. URLs stay as they
/// are, since Discord parses them before Markdown.
fn plain(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for word in text.split_inclusive(char::is_whitespace) {
        if word.starts_with("https://") || word.starts_with("http://") {
            written.push_str(word);
            continue;
        }
        for letter in word.chars() {
            if matches!(letter, '\\' | '*' | '_' | '~' | '`' | '|' | '[' | ']' | '<' | '>' | '#') {
                written.push('\\');
            }
            written.push(letter);
        }
    }
    written
}

/// Adds `wait=true`: without it, Discord confirms messages that it then drops.
pub(super) fn request_url(url: String) -> String {
    match url::Url::parse(&url) {
        Ok(mut parsed) if !parsed.query_pairs().any(|(name, _)| name == "wait") => {
            parsed.query_pairs_mut().append_pair("wait", "true");
            parsed.into()
        }
        _ => url,
    }
}

/// A deleted webhook (404) must not be called again, nor one with an invalid token (401).
pub(crate) fn classify(response: &ReceiverResponse<'_>) -> Verdict {
    match response.status {
        429 => Verdict::Retry(response.delay_in_body("/retry_after").or(response.retry_after)),
        401 | 404 | 410 => Verdict::Gone,
        400 | 403 => Verdict::GiveUp,
        _ => response.classify_by_status(),
    }
}
