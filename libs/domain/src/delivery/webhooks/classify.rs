//! Classifies the responses of receivers by the rules of their platforms.

use super::response::{ReceiverResponse, Verdict};
use super::template::Template;
use crate::chat::{discord, google_chat, slack, teams, telegram};

/// Classifies `response` by the rules of the template's platform.
pub fn classify_response(template: Template, response: &ReceiverResponse<'_>) -> Verdict {
    match template {
        Template::Default => response.classify_by_status(),
        Template::Slack => slack::classify(response),
        Template::Discord => discord::classify(response),
        Template::Telegram => telegram::classify(response),
        Template::Teams => teams::classify(response),
        Template::GoogleChat => google_chat::classify(response),
    }
}

#[cfg(test)]
mod tests;
