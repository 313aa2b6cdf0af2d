//! Formats of webhook deliveries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Format of a webhook's deliveries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Template {
    /// Standard Webhooks, for programs.
    #[default]
    Default,
    /// Slack's incoming webhooks.
    Slack,
    /// Discord's webhooks.
    Discord,
    /// A Telegram bot's `sendMessage`.
    Telegram,
    /// Microsoft Teams, by a workflow.
    Teams,
    /// Google Chat's incoming webhooks.
    GoogleChat,
}

impl Template {
    /// Every template.
    pub const ALL: [Self; 6] =
        [Self::Default, Self::Slack, Self::Discord, Self::Telegram, Self::Teams, Self::GoogleChat];

    /// Returns the template's name in the API and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Slack => "slack",
            Self::Discord => "discord",
            Self::Telegram => "telegram",
            Self::Teams => "teams",
            Self::GoogleChat => "google-chat",
        }
    }

    /// Parses the result of [`Self::as_str`].
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|template| template.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_equals_the_json() {
        for template in Template::ALL {
            assert_eq!(serde_json::json!(template), template.as_str());
            assert_eq!(Template::parse(template.as_str()), Some(template));
        }
        assert_eq!(Template::parse("Slack"), None);
    }
}
