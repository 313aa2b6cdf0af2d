//! Section `[signin]`; `config.toml` says what each setting means.

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
    /// Whether anybody may sign in by typing an e-mail.
    pub local: bool,
    /// Hosts and networks of providers reached although the guard would refuse them.
    pub allow: Vec<String>,
    /// How long somebody may take at the provider.
    #[serde(with = "service::config::duration")]
    pub attempt_window: Duration,
    /// Sign-ins one address may begin in an hour.
    pub attempts_per_hour: u32,
    /// How long an unused session lasts.
    #[serde(with = "service::config::duration")]
    pub session_idle: Duration,
    /// How long any session lasts.
    #[serde(with = "service::config::duration")]
    pub session_absolute: Duration,
    /// How long a provider's own description of itself is believed.
    #[serde(with = "service::config::duration")]
    pub discovery_every: Duration,
    /// Who is asked about people, by the name in the path.
    pub providers: BTreeMap<String, Provider>,
}

/// Section `[signin.providers.<name>]`. What is left out is known of `google` and `github`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// How it speaks; OpenID Connect unless the name is `github`.
    pub kind: Option<Kind>,
    /// Its issuer; of GitHub, where its pages are.
    pub issuer: Option<String>,
    /// What it calls us.
    pub client_id: String,
    /// What proves that we are who it calls so.
    pub client_secret: Secret,
    /// What its button says.
    pub label: Option<String>,
    /// Of GitHub: where people are sent, if not the usual place at its issuer.
    pub authorize_url: Option<String>,
    /// Of GitHub: where codes are exchanged, if not the usual place at its issuer.
    pub token_url: Option<String>,
    /// Of GitHub: where it says who somebody is.
    pub user_url: Option<String>,
}

/// How a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// OpenID Connect, found by discovery.
    Oidc,
    /// OAuth 2 and an API that says who somebody is, as GitHub has it.
    Github,
}

impl Config {
    /// Refuses what would let strangers in.
    ///
    /// # Errors
    /// The local sign-in page is wanted for a base URL that others can reach.
    pub(crate) fn check(&self, addresses: &Addresses) -> anyhow::Result<()> {
        anyhow::ensure!(
            !self.local || addresses.is_local(),
            "signin.local lets anybody be anybody, so it is only for a base URL on localhost, not for {}: configure \
             a provider in [signin.providers] instead",
            addresses.base()
        );
        Ok(())
    }

    /// How long an unused session lasts.
    pub(crate) fn idle(&self) -> TimeDelta {
        TimeDelta::from_std(self.session_idle).unwrap_or(TimeDelta::MAX)
    }

    /// How long any session lasts.
    pub(crate) fn absolute(&self) -> TimeDelta {
        TimeDelta::from_std(self.session_absolute).unwrap_or(TimeDelta::MAX)
    }
}
