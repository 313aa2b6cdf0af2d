//! An event as chat platforms show it: each has its own format, limits and ways to be fooled by what visitors type.
//!
//! Lengths are counted in UTF-16 units, which is never less than a platform counts itself.

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

/// What stands where an answer is empty: some platforms refuse empty texts.
const EMPTY: &str = "–";

/// The body for `template` of an event as [`Notice::read`] takes it; `None` for the plain one, which is the event
/// itself.
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

/// Where `template` is posted to, of the address its owner gave.
pub fn address(template: Template, url: String) -> String {
    match template {
        Template::Discord => discord::address(url),
        Template::Telegram => telegram::address(url),
        _ => url,
    }
}

/// How many of `count` fields can be shown in `max_bytes` of JSON, by trying; `write` makes the body that shows so
/// many.
fn most_that_fit(count: usize, max_bytes: usize, write: impl Fn(usize) -> Value) -> Value {
    let fits = |shown: usize| write(shown).to_string().len() <= max_bytes;
    let (mut fitting, mut beyond) = (0, count + 1);
    while beyond - fitting > 1 {
        let middle = fitting.midpoint(beyond);
        if fits(middle) { fitting = middle } else { beyond = middle }
    }
    write(fitting)
}

/// Says how many fields are left out, if any.
fn left_out(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("… and one more field".to_owned()),
        more => Some(format!("… and {more} more fields")),
    }
}

#[cfg(test)]
mod tests;
