//! Slack's incoming webhooks: blocks.
//!
//! Limits: 50 blocks, 150 characters of header, 10 fields of 2,000 characters in a section. Slack also rejects
//! messages beyond about 13,000 characters in all, although no such limit is documented.

use serde_json::{Value, json};

use super::fit::omitted_fields;
use super::notice::Notice;
use super::truncate::{entity, length, truncate, truncate_escaped};
use crate::webhooks::{ReceiverResponse, Verdict};

const HEADER_MAX: usize = 150;
const SECTION_MAX: usize = 3_000;
const FIELDS_OF_A_SECTION: usize = 10;
/// Leaves three of the 50 blocks for the header, the text and the last line.
const SECTIONS_MAX: usize = 46;
const NAME_MAX: usize = 190;
const VALUE_MAX: usize = 1_800;
/// All fields together.
const FIELDS_MAX: usize = 9_000;

/// Returns the message. `&`, `<` and `>` are escaped, which makes `<!channel>` and `<@U…>` plain text.
pub fn body(notice: &Notice) -> Value {
    let plain = |text: &str, max| json!({"type": "plain_text", "text": truncate(text, max), "emoji": false});
    let marked = |text: String| json!({"type": "mrkdwn", "text": text});
    let mut blocks = vec![json!({"type": "header", "text": plain(&notice.title, HEADER_MAX)})];
    if let Some(text) = &notice.text {
        blocks.push(json!({"type": "section", "text": marked(truncate_escaped(text, SECTION_MAX, entity))}));
    }
    let (mut room, mut shown) = (FIELDS_MAX, Vec::new());
    for (name, value) in notice.fields.iter().take(SECTIONS_MAX * FIELDS_OF_A_SECTION) {
        let name = truncate_escaped(name, NAME_MAX, entity);
        let field = format!("*{name}*\n{}", truncate_escaped(value, VALUE_MAX, entity));
        let Some(less) = room.checked_sub(length(&field)) else { break };
        room = less;
        shown.push(marked(field));
    }
    let rest = omitted_fields(notice.fields.len() - shown.len());
    let sections =
        shown.chunks(FIELDS_OF_A_SECTION).map(|fields| json!({"type": "section", "fields": fields}));
    blocks.extend(sections);
    let last: Vec<String> = rest.into_iter().chain([notice.when()]).filter(|text| !text.is_empty()).collect();
    if !last.is_empty() {
        blocks.push(json!({"type": "context", "elements": [marked(last.join(" · "))]}));
    }
    let summary = truncate_escaped(&notice.title, SECTION_MAX, entity);
    json!({"text": summary, "blocks": blocks, "unfurl_links": false, "unfurl_media": false})
}

/// Slack returns 400 and 403 for messages that it will never accept, and 404 and 410 if the webhook or its channel
/// was deleted.
pub(crate) fn classify(response: &ReceiverResponse<'_>) -> Verdict {
    match response.status {
        400 | 403 => Verdict::GiveUp,
        404 | 410 => Verdict::Gone,
        _ => response.classify_by_status(),
    }
}
