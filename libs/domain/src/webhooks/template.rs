//! For whom a delivery is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The form of a webhook's bodies.
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
    /// Microsoft Teams, over a workflow.
    Teams,
    /// Google Chat's incoming webhooks.
    GoogleChat,
}

impl Template {
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::Default, Self::Slack, Self::Discord, Self::Telegram, Self::Teams, Self::GoogleChat];

    /// Its word in the API and at rest.
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

    /// The one with that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|template| template.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_templates_word_is_what_the_api_writes() {
        for template in Template::ALL {
            assert_eq!(serde_json::json!(template), template.as_str());
            assert_eq!(Template::parse(template.as_str()), Some(template));
        }
        assert_eq!(Template::parse("Slack"), None);
    }
}
