//! GitHub: OAuth 2 without an ID token, so the identity comes from the user API.

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
use store::identities::ProviderIdentity;
use url::Url;

use super::client::ProviderClient;
use super::flow::{CallbackParams, FlowSecrets, ProviderError};
use crate::signin::config;

const USER_URL: &str = "https://api.github.com/user";

type OAuthClient = BasicClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// GitHub, or a service with the same API.
pub(super) struct GitHub {
    issuer: String,
    oauth: OAuthClient,
    user_url: String,
    http: ProviderClient,
}

/// A user of the API. The id stays the same after a rename.
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
        http: ProviderClient,
    ) -> anyhow::Result<Self> {
        let issuer = issuer.trim_end_matches('/').to_owned();
        let at = |setting: &Option<String>, path: &str| {
            setting.clone().unwrap_or_else(|| format!("{issuer}{path}"))
        };
        let authorize = AuthUrl::new(at(&settings.authorize_url, "/login/oauth/authorize"));
        let token = TokenUrl::new(at(&settings.token_url, "/login/oauth/access_token"));
        let oauth = BasicClient::new(ClientId::new(settings.client_id.clone()))
            .set_client_secret(ClientSecret::new(settings.client_secret.expose_secret().to_owned()))
            .set_auth_type(AuthType::RequestBody)
            .set_auth_uri(authorize.context("authorize_url is not a URL")?)
            .set_token_uri(token.context("token_url is not a URL")?)
            .set_redirect_uri(RedirectUrl::new(callback)?);
        let user_url = settings.user_url.clone().unwrap_or_else(|| USER_URL.to_owned());
        Ok(Self { issuer, oauth, user_url, http })
    }

    pub(super) fn authorize(&self, secrets: &FlowSecrets) -> Url {
        let verifier = PkceCodeVerifier::new(secrets.pkce_verifier.clone());
        let state = CsrfToken::new(secrets.state.clone());
        let (url, _) = self
            .oauth
            .authorize_url(move || state)
            .add_scope(Scope::new("read:user".to_owned()))
            .add_scope(Scope::new("user:email".to_owned()))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
            .url();
        url
    }

    pub(super) async fn identify(
        &self,
        params: CallbackParams<'_>,
        secrets: &FlowSecrets,
    ) -> Result<ProviderIdentity, ProviderError> {
        if params.issuer.is_some_and(|issuer| issuer.trim_end_matches('/') != self.issuer) {
            return Err(ProviderError::Invalid("another issuer sent the callback".to_owned()));
        }
        let exchange = self
            .oauth
            .exchange_code(AuthorizationCode::new(params.code))
            .set_pkce_verifier(PkceCodeVerifier::new(secrets.pkce_verifier.clone()));
        let tokens = exchange.request_async(&self.http).await.map_err(|error| match error {
            RequestTokenError::Request(error) => ProviderError::Unavailable(error.to_string()),
            // GitHub returns 200 without a token for a wrong code.
            other => ProviderError::Invalid(other.to_string()),
        })?;
        let token = tokens.access_token().secret();
        let user: User = self.get(&self.user_url, token).await?;
        let email = self.primary_email(token).await;
        Ok(ProviderIdentity {
            issuer: self.issuer.clone(),
            subject: user.id.to_string(),
            email_verified: email.as_ref().is_some_and(|email| email.verified),
            email: email.and_then(|email| domain::sign_ins::shown(&email.email)),
            name: domain::sign_ins::shown(user.name.as_deref().unwrap_or(&user.login)),
        })
    }

    /// Returns the primary e-mail address. A failure is not fatal, because the address does not identify the user.
    async fn primary_email(&self, token: &str) -> Option<Email> {
        let url = format!("{}/emails", self.user_url);
        match self.get::<Vec<Email>>(&url, token).await {
            Ok(emails) => emails.into_iter().find(|email| email.primary),
            Err(error) => {
                tracing::warn!(%error, "failed to fetch the e-mail address of a user");
                None
            }
        }
    }

    async fn get<T: DeserializeOwned>(&self, url: &str, token: &str) -> Result<T, ProviderError> {
        let unavailable = |error: &dyn std::fmt::Display| ProviderError::Unavailable(error.to_string());
        let request = http::Request::get(url)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::ACCEPT, "application/vnd.github+json");
        let request: HttpRequest = request.body(Vec::new()).map_err(|error| unavailable(&error))?;
        let response = self.http.call(request).await.map_err(|error| unavailable(&error))?;
        if !response.status().is_success() {
            return Err(unavailable(&response.status()));
        }
        serde_json::from_slice(response.body()).map_err(|error| unavailable(&error))
    }
}
