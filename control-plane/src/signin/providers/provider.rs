//! A configured identity provider, whichever protocol it speaks.

use std::collections::BTreeMap;

use anyhow::Context;
use domain::addresses::Addresses;
use service::Clock;
use store::identities::ProviderIdentity;
use url::Url;
use web::{Code, Problem};

use super::client::ProviderClient;
use super::flow::{CallbackParams, FlowSecrets, ProviderError};
use super::github::GitHub;
use super::oidc::Oidc;
use crate::signin::config::{self, Config, Kind};

/// Name, label and issuer of providers that need no further settings.
const WELL_KNOWN: [(&str, &str, &str); 2] =
    [("google", "Google", "https://accounts.google.com"), ("github", "GitHub", "https://github.com")];

/// The configured providers, by name.
pub struct Providers(BTreeMap<String, Provider>);

/// A configured provider.
pub struct Provider {
    /// The name in its paths.
    pub(in crate::signin) name: String,
    /// The label of its button.
    pub(in crate::signin) label: String,
    adapter: Adapter,
}

enum Adapter {
    Oidc(Box<Oidc>),
    GitHub(Box<GitHub>),
}

impl Providers {
    pub(in crate::signin) fn new(
        config: &Config,
        addresses: &Addresses,
        clock: &Clock,
    ) -> anyhow::Result<Self> {
        let client = ProviderClient::new(&config.allow)?;
        let make = |(name, settings): (&String, &config::Provider)| {
            let provider = Provider::new(name, settings, config, addresses, &client, clock);
            Ok((name.clone(), provider.with_context(|| format!("signin.providers.{name}"))?))
        };
        Ok(Self(config.providers.iter().map(make).collect::<anyhow::Result<_>>()?))
    }

    pub(in crate::signin) fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.0.values()
    }

    /// Returns the provider of this name. The 404 of a well-known provider explains how to configure it.
    pub(in crate::signin) fn find(&self, name: &str) -> Result<&Provider, Problem> {
        self.0.get(name).ok_or_else(|| match WELL_KNOWN.iter().find(|(known, ..)| *known == name) {
            Some((_, label, _)) => {
                Problem::new(Code::NotFound, format!("sign-in with {label} is not configured on this server"))
                    .hint(&format!(
                        "the operator sets signin.providers.{name}.client_id and signin.providers.{name}.client_secret"
                    ))
            }
            None => Problem::new(Code::NotFound, "unknown sign-in provider; GET /login lists all"),
        })
    }
}

impl Provider {
    fn new(
        name: &str,
        settings: &config::Provider,
        config: &Config,
        addresses: &Addresses,
        client: &ProviderClient,
        clock: &Clock,
    ) -> anyhow::Result<Self> {
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        anyhow::ensure!(
            name.chars().all(is_word),
            "a provider's name is part of a path: use only a-z, 0-9 and -"
        );
        anyhow::ensure!(!settings.client_id.is_empty(), "client_id is missing");
        let known = WELL_KNOWN.iter().find(|(known, ..)| *known == name);
        let issuer = settings.issuer.as_deref().or(known.map(|(.., issuer)| *issuer));
        let issuer =
            issuer.context("issuer is missing: the provider's URL, like https://accounts.google.com")?;
        let kind = settings.kind.unwrap_or(if name == "github" { Kind::Github } else { Kind::Oidc });
        let callback = format!("{}/api/auth/oauth/{name}/callback", addresses.base());
        let adapter = match kind {
            Kind::Oidc => {
                let max_age = config.discovery_max_age;
                Adapter::Oidc(Box::new(Oidc::new(
                    issuer,
                    settings,
                    callback,
                    max_age,
                    client.clone(),
                    clock.clone(),
                )?))
            }
            Kind::Github => {
                Adapter::GitHub(Box::new(GitHub::new(issuer, settings, callback, client.clone())?))
            }
        };
        let label = settings.label.clone().or_else(|| known.map(|(_, label, _)| (*label).to_owned()));
        Ok(Self { name: name.to_owned(), label: label.unwrap_or_else(|| name.to_owned()), adapter })
    }

    /// Returns the URL that the visitor is redirected to.
    pub(in crate::signin) async fn authorize(&self, secrets: &FlowSecrets) -> Result<Url, ProviderError> {
        match &self.adapter {
            Adapter::Oidc(oidc) => oidc.authorize(secrets).await,
            Adapter::GitHub(github) => Ok(github.authorize(secrets)),
        }
    }

    /// Exchanges the code of a callback for the visitor's identity.
    pub(in crate::signin) async fn identify(
        &self,
        params: CallbackParams<'_>,
        secrets: &FlowSecrets,
    ) -> Result<ProviderIdentity, ProviderError> {
        let identity = match &self.adapter {
            Adapter::Oidc(oidc) => oidc.identify(params, secrets).await,
            Adapter::GitHub(github) => github.identify(params, secrets).await,
        }?;
        if !domain::sign_ins::is_subject(&identity.subject) {
            return Err(ProviderError::Invalid("a malformed subject".to_owned()));
        }
        Ok(identity)
    }
}
