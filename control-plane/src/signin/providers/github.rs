//! GitHub: OAuth 2 without a signed token, so its API is asked who the code is about.

use anyhow::Context;
use http::header;
use oauth2::basic::BasicClient;
use oauth2::{
    AsyncHttpClient, AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointNotSet,
    EndpointSet, HttpRequest, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope,
    TokenResponse, TokenUrl,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use service::config::ExposeSecret;
use store::identities::Vouched;
use url::Url;

use super::calls::Calls;
use super::{Brought, Refusal, Secrets};
use crate::signin::config;

const USER_URL: &str = "https://api.github.com/user";

type Client = BasicClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// GitHub, or something that speaks like it.
pub(super) struct GitHub {
    issuer: String,
    client: Client,
    user_url: String,
    calls: Calls,
}

/// Somebody, as the API has them. The number stays when they rename themselves.
#[derive(Deserialize)]
struct User {
    id: u64,
    login: String,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Email {
    email: String,
    primary: bool,
    verified: bool,
}

impl GitHub {
    pub(super) fn new(
        issuer: &str,
        settings: &config::Provider,
        callback: String,
        calls: Calls,
    ) -> anyhow::Result<Self> {
        let issuer = issuer.trim_end_matches('/').to_owned();
        let at =
            |given: &Option<String>, path: &str| given.clone().unwrap_or_else(|| format!("{issuer}{path}"));
        let authorize = AuthUrl::new(at(&settings.authorize_url, "/login/oauth/authorize"));
        let token = TokenUrl::new(at(&settings.token_url, "/login/oauth/access_token"));
        let client = BasicClient::new(ClientId::new(settings.client_id.clone()))
            .set_client_secret(ClientSecret::new(settings.client_secret.expose_secret().to_owned()))
            .set_auth_type(AuthType::RequestBody)
            .set_auth_uri(authorize.context("authorize_url is no address")?)
            .set_token_uri(token.context("token_url is no address")?)
            .set_redirect_uri(RedirectUrl::new(callback)?);
        let user_url = settings.user_url.clone().unwrap_or_else(|| USER_URL.to_owned());
        Ok(Self { issuer, client, user_url, calls })
    }

    pub(super) fn authorize(&self, secrets: &Secrets) -> Url {
        let verifier = PkceCodeVerifier::new(secrets.pkce_verifier.clone());
        let state = CsrfToken::new(secrets.state.clone());
        let (url, _) = self
            .client
            .authorize_url(move || state)
            .add_scope(Scope::new("read:user".to_owned()))
            .add_scope(Scope::new("user:email".to_owned()))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
            .url();
        url
    }

    pub(super) async fn identify(&self, brought: Brought<'_>, secrets: &Secrets) -> Result<Vouched, Refusal> {
        if brought.issuer.is_some_and(|issuer| issuer.trim_end_matches('/') != self.issuer) {
            return Err(Refusal::Unbelievable("another issuer sent it".to_owned()));
        }
        let exchange = self
            .client
            .exchange_code(AuthorizationCode::new(brought.code))
            .set_pkce_verifier(PkceCodeVerifier::new(secrets.pkce_verifier.clone()));
        let tokens = exchange.request_async(&self.calls).await.map_err(|error| match error {
            RequestTokenError::Request(error) => Refusal::Away(error.to_string()),
            // It answers 200 to a wrong code too, only without a token in it.
            other => Refusal::Unbelievable(other.to_string()),
        })?;
        let token = tokens.access_token().secret();
        let user: User = self.ask(&self.user_url, token).await?;
        let email = self.primary_email(token).await;
        Ok(Vouched {
            issuer: self.issuer.clone(),
            subject: user.id.to_string(),
            email_verified: email.as_ref().is_some_and(|email| email.verified),
            email: email.and_then(|email| domain::sign_ins::shown(&email.email)),
            name: domain::sign_ins::shown(user.name.as_deref().unwrap_or(&user.login)),
        })
    }

    /// Nobody is recognised by it, so without it we go on.
    async fn primary_email(&self, token: &str) -> Option<Email> {
        let url = format!("{}/emails", self.user_url);
        match self.ask::<Vec<Email>>(&url, token).await {
            Ok(all) => all.into_iter().find(|email| email.primary),
            Err(error) => {
                tracing::warn!(%error, "a provider doesn't tell an e-mail");
                None
            }
        }
    }

    async fn ask<T: DeserializeOwned>(&self, url: &str, token: &str) -> Result<T, Refusal> {
        let away = |error: &dyn std::fmt::Display| Refusal::Away(error.to_string());
        let request = http::Request::get(url)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::ACCEPT, "application/vnd.github+json");
        let request: HttpRequest = request.body(Vec::new()).map_err(|error| away(&error))?;
        let answer = self.calls.call(request).await.map_err(|error| away(&error))?;
        if !answer.status().is_success() {
            return Err(away(&answer.status()));
        }
        serde_json::from_slice(answer.body()).map_err(|error| away(&error))
    }
}
