//! Telegram's `sendMessage`: HTML with at most 4,096 characters of text.

use serde_json::{Value, json};

use super::fit::omitted_fields;
use super::notice::Notice;
use super::truncate::{entity, length, truncate, truncate_escaped};
use crate::webhooks::{ReceiverResponse, Verdict};

const TITLE_MAX: usize = 300;
const NAME_MAX: usize = 100;
const VALUE_MAX: usize = 1_500;
const TOTAL_MAX: usize = 4_096;
/// Reserved for the number of omitted fields and the time.
const END_MAX: usize = 64;
const METHOD: &str = "/sendMessage";

/// Regular expression of a chat id: a number, or the name of a public channel.
pub const CHAT_ID_PATTERN: &str = "^(-?[0-9]{1,19}|@[A-Za-z][A-Za-z0-9_]{3,63})$";

/// Returns the message to a chat.
pub fn body(notice: &Notice, chat_id: &str) -> Value {
    let safe = |text: &str| truncate_escaped(text, usize::MAX, entity);
    let title = truncate(&notice.title, TITLE_MAX);
    let mut room = TOTAL_MAX - END_MAX - length(&title);
    let mut lines = vec![format!("<b>{}</b>", safe(&title))];
    if let Some(text) = &notice.text {
        let text = truncate(text, VALUE_MAX);
        room -= length(&text) + 1;
        lines.push(safe(&text));
    }
    let mut shown = 0;
    for (name, value) in &notice.fields {
        let (name, value) = (truncate(name, NAME_MAX), truncate(value, VALUE_MAX));
        let Some(less) = room.checked_sub(length(&name) + length(&value) + 3) else { break };
        room = less;
        shown += 1;
        lines.push(format!("<b>{}</b>: {}", safe(&name), safe(&value)));
    }
    lines.extend(omitted_fields(notice.fields.len() - shown));
    lines.extend(notice.at.map(|_| notice.when()));
    json!({
        "chat_id": chat_id,
        "text": lines.join("\n"),
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": true},
    })
}

/// Appends the method to a URL of the bot alone (`…/bot<token>`).
pub(super) fn request_url(url: String) -> String {
    match url::Url::parse(&url) {
        Ok(mut parsed) if is_bots(parsed.path()) => {
            let path = format!("{}{METHOD}", parsed.path().trim_end_matches('/'));
            parsed.set_path(&path);
            parsed.into()
        }
        _ => url,
    }
}

/// Returns whether a path ends with the bot, without a method.
fn is_bots(path: &str) -> bool {
    path.trim_end_matches('/').rsplit('/').next().is_some_and(|last| last.starts_with("bot"))
}

/// The body of the response decides: it has the retry delay, and the new id of a migrated group. A bot that was
/// removed from the chat (403), or has an invalid token (401, 404), is not called again.
pub(crate) fn classify(response: &ReceiverResponse<'_>) -> Verdict {
    let body = response.json();
    if let Some(id) = body.pointer("/parameters/migrate_to_chat_id").and_then(Value::as_i64) {
        return Verdict::Moved { chat_id: id.to_string() };
    }
    let code = body["error_code"].as_u64().and_then(|code| u16::try_from(code).ok());
    match code.unwrap_or(response.status) {
        429 => Verdict::Retry(response.delay_in_body("/parameters/retry_after").or(response.retry_after)),
        400 => Verdict::GiveUp,
        401 | 403 | 404 | 410 => Verdict::Gone,
        _ if body["ok"] == false => Verdict::Retry(response.retry_after),
        _ => response.classify_by_status(),
    }
}
