//! Formats of webhook deliveries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

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

    /// Returns the template of the chat platform that gives incoming webhooks such an address; `None` for other addresses.
    ///
    /// Addresses of Slack's workflows are not among them: those expect the names of the workflow's own variables. Neither
    /// is Telegram, because its webhooks need a chat too.
    pub fn of_address(url: &str) -> Option<Self> {
        let url = Url::parse(url).ok().filter(|url| url.scheme() == "https")?;
        let (host, path) = (url.host_str()?, url.path());
        let is_below = |domain: &str| host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
        match host {
            "hooks.slack.com" | "hooks.slack-gov.com" if path.starts_with("/services/") => Some(Self::Slack),
            "discord.com" | "discordapp.com" | "ptb.discord.com" | "canary.discord.com" => of_discord(path),
            "chat.googleapis.com" if path.starts_with("/v1/spaces/") && path.ends_with("/messages") => {
                Some(Self::GoogleChat)
            }
            _ if is_below("logic.azure.com") || is_below("environment.api.powerplatform.com") => {
                (path.contains("/workflows/") && path.contains("/triggers/")).then_some(Self::Teams)
            }
            _ => None,
        }
    }
}

/// The path may name a version of the API, and a format of another service that Discord converts.
fn of_discord(path: &str) -> Option<Template> {
    let rest = path.strip_prefix("/api/")?;
    let webhook = rest.strip_prefix("webhooks/").or_else(|| {
        let (version, rest) = rest.split_once('/')?;
        version.starts_with('v').then_some(rest)?.strip_prefix("webhooks/")
    })?;
    match webhook.trim_end_matches('/').split('/').collect::<Vec<_>>().as_slice() {
        [_id, _token] => Some(Template::Discord),
        [_id, _token, "slack"] => Some(Template::Slack),
        _ => None,
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

    #[test]
    fn the_address_of_a_chat_has_its_template() {
        for (address, template) in [
            ("https://hooks.slack.com/services/T0/B0/x", Some(Template::Slack)),
            ("https://HOOKS.slack.com/services/T0/B0/x", Some(Template::Slack)),
            ("https://hooks.slack.com/workflows/T0/A0/1/x", None),
            ("https://hooks.slack.com/triggers/T0/1/x", None),
            ("http://hooks.slack.com/services/T0/B0/x", None),
            ("https://slack.com/services/T0/B0/x", None),
            ("https://hooks.slack.com.evil.test/services/T0/B0/x", None),
            ("https://discord.com/api/webhooks/1/t", Some(Template::Discord)),
            ("https://discordapp.com/api/webhooks/1/t?wait=true", Some(Template::Discord)),
            ("https://ptb.discord.com/api/v10/webhooks/1/t", Some(Template::Discord)),
            ("https://discord.com/api/webhooks/1/t/slack", Some(Template::Slack)),
            ("https://discord.com/api/webhooks/1/t/github", None),
            ("https://discord.com/channels/1/2", None),
            ("https://chat.googleapis.com/v1/spaces/A/messages?key=k&token=t", Some(Template::GoogleChat)),
            ("https://chat.googleapis.com/v1/spaces/A/members", None),
            (
                "https://prod-1.westeurope.logic.azure.com:443/workflows/a/triggers/manual/paths/invoke?sig=s",
                Some(Template::Teams),
            ),
            (
                "https://x.01.environment.api.powerplatform.com/powerautomate/automations/direct/workflows/a/triggers/manual/paths/invoke?sig=s",
                Some(Template::Teams),
            ),
            ("https://notlogic.azure.com/workflows/a/triggers/manual", None),
            ("https://api.telegram.org/bot1:t/sendMessage", None),
            ("https://example.com/hooks.slack.com/services/x", None),
            ("nonsense", None),
        ] {
            assert_eq!(Template::of_address(address), template, "{address}");
        }
    }
}
