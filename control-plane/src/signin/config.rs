//! Section `[signin]`; `config.toml` documents each setting.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::TimeDelta;
use domain::addresses::Addresses;
use serde::Deserialize;
use service::config::Secret;

/// Section `[signin]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Enables sign-in with any e-mail address, for localhost only.
    pub local: bool,
    /// Hosts and networks of providers exempt from the outbound guard.
    pub allow: Vec<String>,
    /// How long a sign-in may take.
    #[serde(with = "service::config::duration")]
    pub attempt_ttl: Duration,
    /// Sign-ins that one IP address may start per hour.
    pub max_attempts_per_hour: u32,
    /// Lifetime of an unused session.
    #[serde(with = "service::config::duration")]
    pub session_idle_timeout: Duration,
    /// Lifetime of any session.
    #[serde(with = "service::config::duration")]
    pub session_max_age: Duration,
    /// How long after a sign-in its session may do what needs a fresh one.
    #[serde(with = "service::config::duration")]
    pub fresh_for: Duration,
    /// How long a provider's metadata is cached.
    #[serde(with = "service::config::duration")]
    pub discovery_max_age: Duration,
    /// The identity providers, by their name in paths.
    pub providers: BTreeMap<String, Provider>,
}

/// Section `[signin.providers.<name>]`. `google` and `github` have defaults for the optional settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// The protocol; OpenID Connect unless the name is `github`.
    pub kind: Option<Kind>,
    /// The issuer. For GitHub, the base URL of its pages.
    pub issuer: Option<String>,
    /// The OAuth client id.
    pub client_id: String,
    /// The OAuth client secret.
    pub client_secret: Secret,
    /// The label of the provider's button.
    pub label: Option<String>,
    /// GitHub only: the authorization endpoint, unless it is at its usual path.
    pub authorize_url: Option<String>,
    /// GitHub only: the token endpoint, unless it is at its usual path.
    pub token_url: Option<String>,
    /// GitHub only: the API's URL of the current user.
    pub user_url: Option<String>,
}

/// The protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// OpenID Connect with discovery.
    Oidc,
    /// OAuth 2 with GitHub's user API.
    Github,
}

impl Config {
    /// Returns an error if local sign-in is enabled for a base URL that other machines can reach.
    pub(crate) fn check(&self, addresses: &Addresses) -> anyhow::Result<()> {
        anyhow::ensure!(
            !self.local || addresses.is_local(),
            "signin.local accepts any e-mail address without a check, so it requires a base URL on localhost, not {}: \
             configure a provider in [signin.providers] instead",
            addresses.base()
        );
        Ok(())
    }

    /// Lifetime of an unused session.
    pub(crate) fn idle_timeout(&self) -> TimeDelta {
        TimeDelta::from_std(self.session_idle_timeout).unwrap_or(TimeDelta::MAX)
    }

    /// How long after a sign-in its session may do what needs a fresh one.
    pub(crate) fn fresh_for(&self) -> TimeDelta {
        TimeDelta::from_std(self.fresh_for).unwrap_or(TimeDelta::MAX)
    }

    /// Lifetime of any session.
    pub(crate) fn max_age(&self) -> TimeDelta {
        TimeDelta::from_std(self.session_max_age).unwrap_or(TimeDelta::MAX)
    }
}
