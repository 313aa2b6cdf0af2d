//! Webhook events as messages of chat platforms. Each platform has its own format, limits and markup to escape.
//!
//! Lengths are counted in UTF-16 units, which is never less than a platform's own count.

pub mod discord;
pub mod google_chat;
pub mod notice;
pub mod slack;
pub mod teams;
pub mod telegram;
mod truncate;

use serde_json::{Map, Value};

use crate::webhooks::Template;
use notice::Notice;

/// Placeholder of an empty answer: some platforms reject empty texts.
const EMPTY: &str = "–";

/// Returns the body of an event for `template`; `None` for the default template, which sends the event itself.
pub fn body(
    template: Template,
    event: &Value,
    mapping: Option<&Map<String, Value>>,
    telegram_chat_id: Option<&str>,
) -> Option<Value> {
    let notice = || Notice::read(event, mapping);
    match template {
        Template::Default => None,
        Template::Slack => Some(slack::body(&notice())),
        Template::Discord => Some(discord::body(&notice())),
        Template::Telegram => Some(telegram::body(&notice(), telegram_chat_id.unwrap_or_default())),
        Template::Teams => Some(teams::body(&notice())),
        Template::GoogleChat => Some(google_chat::body(&notice())),
    }
}

/// Returns the request URL for `template`, from the one that the owner entered.
pub fn address(template: Template, url: String) -> String {
    match template {
        Template::Discord => discord::address(url),
        Template::Telegram => telegram::address(url),
        _ => url,
    }
}

/// Returns the body with the maximum number of `count` fields that fits into `max_bytes` of JSON, by trial; `write`
/// creates the body with a given number.
fn most_that_fit(count: usize, max_bytes: usize, write: impl Fn(usize) -> Value) -> Value {
    let fits = |shown: usize| write(shown).to_string().len() <= max_bytes;
    let (mut fitting, mut beyond) = (0, count + 1);
    while beyond - fitting > 1 {
        let middle = fitting.midpoint(beyond);
        if fits(middle) { fitting = middle } else { beyond = middle }
    }
    write(fitting)
}

/// Returns a line with the number of omitted fields, if any.
fn left_out(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("… and one more field".to_owned()),
        more => Some(format!("… and {more} more fields")),
    }
}

#[cfg(test)]
mod tests;
