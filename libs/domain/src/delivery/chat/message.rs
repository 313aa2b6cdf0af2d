//! The message and the request URL of each platform.

use serde_json::Value;

use super::notice::Notice;
use super::{discord, google_chat, slack, teams, telegram};
use crate::webhooks::{FieldNames, Template};

/// Returns the body of an event for `template`; `None` for the default template, which sends the event itself.
pub fn body(
    template: Template,
    event: &Value,
    names: FieldNames<'_>,
    telegram_chat_id: Option<&str>,
) -> Option<Value> {
    let notice = || Notice::read(event, names);
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
pub fn request_url(template: Template, url: String) -> String {
    match template {
        Template::Discord => discord::request_url(url),
        Template::Telegram => telegram::request_url(url),
        _ => url,
    }
}
