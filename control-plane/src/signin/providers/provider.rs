//! Providers: who says who somebody is. Each is sent people with three secrets, and is asked about whoever comes
//! back with a code.

mod calls;
mod github;
mod oidc;

use std::collections::BTreeMap;

use anyhow::Context;
use domain::addresses::Addresses;
use service::{Clock, Rng};
use store::identities::Vouched;
use url::Url;
use web::{Code, Problem};

use self::calls::Calls;
use self::github::GitHub;
use self::oidc::Oidc;
use super::config::{self, Config, Kind};

/// What is known of these without being told.
const WELL_KNOWN: [(&str, &str, &str); 2] =
    [("google", "Google", "https://accounts.google.com"), ("github", "GitHub", "https://github.com")];

/// All that are configured.
pub struct Providers(BTreeMap<String, Provider>);

/// One of them.
pub struct Provider {
    /// In the path.
    pub(super) name: String,
    /// On its button.
    pub(super) label: String,
    adapter: Adapter,
}

enum Adapter {
    Oidc(Box<Oidc>),
    GitHub(Box<GitHub>),
}

/// What one attempt to sign in is known by, each a random token.
pub(super) struct Secrets {
    /// Comes back with whoever was sent.
    pub(super) state: String,
    /// Comes back in the provider's token.
    pub(super) nonce: String,
    /// Only its hash is sent along; it is shown when the code is exchanged.
    pub(super) pkce_verifier: String,
}

/// What somebody brings back.
pub(super) struct Brought<'a> {
    /// To be exchanged.
    pub(super) code: String,
    /// Who says to have sent them (RFC 9207).
    pub(super) issuer: Option<&'a str>,
}

/// Nobody was signed in.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The provider gives no answer, or none that can be read. It may later.
    #[error("the provider gives no answer: {0}")]
    Away(String),
    /// What it says, or what somebody says it said, doesn't hold.
    #[error("the provider's word can't be believed: {0}")]
    Unbelievable(String),
}

impl Secrets {
    pub(super) fn new(rng: &Rng) -> Self {
        let token = || super::token(rng);
        Self { state: token(), nonce: token(), pkce_verifier: token() }
    }
}

impl Providers {
    /// # Errors
    /// A setting can't be used.
    pub(super) fn new(config: &Config, addresses: &Addresses, clock: &Clock) -> anyhow::Result<Self> {
        let calls = Calls::new(&config.allow)?;
        let make = |(name, settings): (&String, &config::Provider)| {
            let provider = Provider::new(name, settings, config, addresses, &calls, clock);
            Ok((name.clone(), provider.with_context(|| format!("signin.providers.{name}"))?))
        };
        Ok(Self(config.providers.iter().map(make).collect::<anyhow::Result<_>>()?))
    }

    /// Every provider.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.0.values()
    }

    /// The provider with that name.
    ///
    /// # Errors
    /// There is none; of a well-known one the problem says how to have it.
    pub(super) fn find(&self, name: &str) -> Result<&Provider, Problem> {
        self.0.get(name).ok_or_else(|| match WELL_KNOWN.iter().find(|(known, ..)| *known == name) {
            Some((_, label, _)) => {
                Problem::new(Code::NotFound, format!("signing in with {label} is not set up on this server"))
                    .hint(&format!(
                        "its operator sets signin.providers.{name}.client_id and signin.providers.{name}.client_secret"
                    ))
            }
            None => Problem::new(Code::NotFound, "there is no such way to sign in; GET /login shows all"),
        })
    }
}

impl Provider {
    fn new(
        name: &str,
        settings: &config::Provider,
        config: &Config,
        addresses: &Addresses,
        calls: &Calls,
        clock: &Clock,
    ) -> anyhow::Result<Self> {
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        anyhow::ensure!(name.chars().all(is_word), "a provider's name stands in a path: a-z, 0-9 and - only");
        anyhow::ensure!(!settings.client_id.is_empty(), "client_id is missing");
        let known = WELL_KNOWN.iter().find(|(known, ..)| *known == name);
        let issuer = settings.issuer.as_deref().or(known.map(|(.., issuer)| *issuer));
        let issuer =
            issuer.context("issuer is missing: the provider's address, like https://accounts.google.com")?;
        let kind = settings.kind.unwrap_or(if name == "github" { Kind::Github } else { Kind::Oidc });
        let callback = format!("{}/api/auth/oauth/{name}/callback", addresses.base());
        let adapter = match kind {
            Kind::Oidc => {
                let every = config.discovery_every;
                Adapter::Oidc(Box::new(Oidc::new(
                    issuer,
                    settings,
                    callback,
                    every,
                    calls.clone(),
                    clock.clone(),
                )?))
            }
            Kind::Github => {
                Adapter::GitHub(Box::new(GitHub::new(issuer, settings, callback, calls.clone())?))
            }
        };
        let label = settings.label.clone().or_else(|| known.map(|(_, label, _)| (*label).to_owned()));
        Ok(Self { name: name.to_owned(), label: label.unwrap_or_else(|| name.to_owned()), adapter })
    }

    /// Where to send somebody.
    ///
    /// # Errors
    /// The provider can't be asked where.
    pub(super) async fn authorize(&self, secrets: &Secrets) -> Result<Url, Refusal> {
        match &self.adapter {
            Adapter::Oidc(oidc) => oidc.authorize(secrets).await,
            Adapter::GitHub(github) => Ok(github.authorize(secrets)),
        }
    }

    /// Who came back.
    ///
    /// # Errors
    /// [`Refusal`]: nobody we know of.
    pub(super) async fn identify(&self, brought: Brought<'_>, secrets: &Secrets) -> Result<Vouched, Refusal> {
        let who = match &self.adapter {
            Adapter::Oidc(oidc) => oidc.identify(brought, secrets).await,
            Adapter::GitHub(github) => github.identify(brought, secrets).await,
        }?;
        if !domain::sign_ins::is_subject(&who.subject) {
            return Err(Refusal::Unbelievable("a subject no provider may give".to_owned()));
        }
        Ok(who)
    }
}
