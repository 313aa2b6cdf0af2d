//! OpenID Connect: the provider publishes its metadata and signs ID tokens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use cache::{Bounds, StaleOnErrorCache};
use chrono::{DateTime, Utc};
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreAuthenticationFlow, CoreClaimName, CoreClaimType, CoreClient,
    CoreClientAuthMethod, CoreGrantType, CoreIdToken, CoreIdTokenClaims, CoreJsonWebKey,
    CoreJweContentEncryptionAlgorithm, CoreJweKeyManagementAlgorithm, CoreJwsSigningAlgorithm as Alg,
    CoreResponseMode, CoreResponseType, CoreSubjectIdentifierType, CoreUserInfoClaims,
};
use openidconnect::{
    AccessToken, AdditionalProviderMetadata, AuthType, AuthorizationCode, ClaimsVerificationError, ClientId,
    ClientSecret, CsrfToken, DiscoveryError, EndpointMaybeSet, EndpointNotSet, EndpointSet, IssuerUrl, Nonce,
    OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, ProviderMetadata, RedirectUrl,
    RequestTokenError, Scope, TokenResponse,
};
use serde::{Deserialize, Serialize};
use service::Clock;
use service::config::ExposeSecret;
use store::identities::ProviderIdentity;
use url::Url;

use super::client::ProviderClient;
use super::flow::{CallbackParams, FlowSecrets, ProviderError};
use crate::signin::config;

/// Accepted signatures: asymmetric ones only, neither "none" nor HMAC with the shared client secret.
const ALLOWED_ALGORITHMS: [Alg; 8] = [
    Alg::RsaSsaPkcs1V15Sha256,
    Alg::RsaSsaPkcs1V15Sha384,
    Alg::RsaSsaPkcs1V15Sha512,
    Alg::RsaSsaPssSha256,
    Alg::RsaSsaPssSha384,
    Alg::EcdsaP256Sha256,
    Alg::EcdsaP384Sha384,
    Alg::EdDsa,
];

/// How far the provider's clock may be behind.
const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// The metadata of a provider, including its keys.
type Metadata = ProviderMetadata<
    IssuerMetadata,
    CoreAuthDisplay,
    CoreClientAuthMethod,
    CoreClaimName,
    CoreClaimType,
    CoreGrantType,
    CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm,
    CoreJsonWebKey,
    CoreResponseMode,
    CoreResponseType,
    CoreSubjectIdentifierType,
>;

/// A client with the endpoints of the metadata.
type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// Metadata of RFC 9207: whether callbacks carry the issuer.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct IssuerMetadata {
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl AdditionalProviderMetadata for IssuerMetadata {}

/// An OpenID Connect provider.
pub(super) struct Oidc {
    issuer: IssuerUrl,
    client_id: ClientId,
    client_secret: Option<ClientSecret>,
    callback: RedirectUrl,
    http: ProviderClient,
    metadata: StaleOnErrorCache<(), Arc<Metadata>>,
    clock: Clock,
}

impl Oidc {
    pub(super) fn new(
        issuer: &str,
        settings: &config::Provider,
        callback: String,
        discovery_max_age: Duration,
        http: ProviderClient,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let secret = settings.client_secret.expose_secret();
        let bounds =
            Bounds { max_bytes: 1, max_age: discovery_max_age, retry_interval: Duration::from_secs(10) };
        Ok(Self {
            issuer: IssuerUrl::new(issuer.to_owned()).context("issuer is not a URL")?,
            client_id: ClientId::new(settings.client_id.clone()),
            client_secret: (!secret.is_empty()).then(|| ClientSecret::new(secret.to_owned())),
            callback: RedirectUrl::new(callback)?,
            http,
            metadata: StaleOnErrorCache::new(bounds, |(), _| 1),
            clock,
        })
    }

    pub(super) async fn authorize(&self, secrets: &FlowSecrets) -> Result<Url, ProviderError> {
        let client = self.client(&*self.fetch_metadata().await?);
        let verifier = PkceCodeVerifier::new(secrets.pkce_verifier.clone());
        let (state, nonce) = (CsrfToken::new(secrets.state.clone()), Nonce::new(secrets.nonce.clone()));
        let request = client
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, move || state, move || nonce)
            .add_scope(Scope::new("email".to_owned()))
            .add_scope(Scope::new("profile".to_owned()))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        // `max_age` alone obliges the provider to say when the person signed in.
        let request = match secrets.fresh_for {
            Some(fresh_for) => request.set_max_age(fresh_for).add_prompt(CoreAuthPrompt::Login),
            None => request,
        };
        let (url, _, _) = request.url();
        Ok(url)
    }

    pub(super) async fn identify(
        &self,
        params: CallbackParams<'_>,
        secrets: &FlowSecrets,
    ) -> Result<ProviderIdentity, ProviderError> {
        let metadata = self.fetch_metadata().await?;
        self.check_issuer(&metadata, params.issuer)?;
        let client = self.client(&metadata);
        let exchange = client
            .exchange_code(AuthorizationCode::new(params.code))
            .map_err(|error| ProviderError::Unavailable(error.to_string()))?
            .set_pkce_verifier(PkceCodeVerifier::new(secrets.pkce_verifier.clone()));
        let tokens = exchange.request_async(&self.http).await.map_err(|error| match error {
            RequestTokenError::Request(error) => ProviderError::Unavailable(error.to_string()),
            RequestTokenError::ServerResponse(response) => ProviderError::Invalid(response.to_string()),
            other => ProviderError::Unavailable(other.to_string()),
        })?;
        let id_token = tokens
            .id_token()
            .ok_or_else(|| ProviderError::Invalid("the response has no ID token".to_owned()))?;
        let claims = self.verify(client, id_token, &Nonce::new(secrets.nonce.clone())).await?;
        if let Some(fresh_for) = secrets.fresh_for {
            self.check_auth_time(claims.auth_time(), fresh_for)?;
        }
        let mut identity = ProviderIdentity {
            issuer: self.issuer.to_string(),
            subject: claims.subject().to_string(),
            email: claims.email().and_then(|email| domain::sign_ins::shown(email)),
            email_verified: claims.email_verified().unwrap_or_default(),
            name: claims.name().and_then(|name| domain::sign_ins::shown(name.get(None)?)),
        };
        // Many providers return the e-mail address only from the userinfo endpoint.
        if identity.email.is_none()
            && let Some(user_info) = self.fetch_user_info(&metadata, tokens.access_token(), &claims).await
        {
            identity.email = user_info.email().and_then(|email| domain::sign_ins::shown(email));
            identity.email_verified = user_info.email_verified().unwrap_or_default();
            identity.name = identity.name.or_else(|| domain::sign_ins::shown(user_info.name()?.get(None)?));
        }
        Ok(identity)
    }

    /// Returns the cached metadata, or fetches it.
    async fn fetch_metadata(&self) -> Result<Arc<Metadata>, ProviderError> {
        let fetch = async {
            let fetched = Metadata::discover_async(self.issuer.clone(), &self.http).await;
            fetched.map(Arc::new).map_err(|error| match error {
                DiscoveryError::Request(error) => ProviderError::Unavailable(error.to_string()),
                other => ProviderError::Unavailable(format!("its metadata is invalid: {other}")),
            })
        };
        Ok(self.metadata.get(&(), Instant::now(), fetch).await?.value)
    }

    fn client(&self, metadata: &Metadata) -> Client {
        let methods = metadata.token_endpoint_auth_methods_supported();
        let supports = |method| methods.is_none_or(|methods| methods.contains(&method));
        let auth_type = if supports(CoreClientAuthMethod::ClientSecretBasic) {
            AuthType::BasicAuth
        } else {
            AuthType::RequestBody
        };
        let (client_id, secret) = (self.client_id.clone(), self.client_secret.clone());
        CoreClient::from_provider_metadata(metadata.clone(), client_id, secret)
            .set_redirect_uri(self.callback.clone())
            .set_auth_type(auth_type)
    }

    /// Rejects a callback of another issuer, which could redirect the code exchange to the wrong provider (RFC 9207).
    fn check_issuer(&self, metadata: &Metadata, issuer: Option<&str>) -> Result<(), ProviderError> {
        let is_required = metadata.additional_metadata().authorization_response_iss_parameter_supported;
        match issuer {
            Some(issuer) if issuer == self.issuer.as_str() => Ok(()),
            None if !is_required => Ok(()),
            Some(_) => Err(ProviderError::Invalid("another issuer sent the callback".to_owned())),
            None => Err(ProviderError::Invalid("the callback lacks its issuer".to_owned())),
        }
    }

    /// Returns the claims of an ID token that is signed by the provider, addressed to this client, made for this attempt
    /// and not expired. The provider may have rotated its keys, so a failed signature check reloads them once.
    async fn verify(
        &self,
        client: Client,
        id_token: &CoreIdToken,
        nonce: &Nonce,
    ) -> Result<CoreIdTokenClaims, ProviderError> {
        let verify = |client: &Client| {
            let clock = self.clock.clone();
            let verifier = client
                .id_token_verifier()
                .set_allowed_algs(ALLOWED_ALGORITHMS)
                .set_time_fn(move || clock.now());
            id_token.claims(&verifier, nonce).cloned()
        };
        let claims = match verify(&client) {
            Err(ClaimsVerificationError::SignatureVerification(_)) => {
                self.metadata.invalidate(&());
                verify(&self.client(&*self.fetch_metadata().await?))
            }
            other => other,
        };
        claims.map_err(|error| ProviderError::Invalid(error.to_string()))
    }

    /// Rejects a sign-in that the provider took from an earlier one, although a new one was asked for.
    fn check_auth_time(
        &self,
        auth_time: Option<DateTime<Utc>>,
        fresh_for: Duration,
    ) -> Result<(), ProviderError> {
        let oldest = self.clock.now() - fresh_for - CLOCK_SKEW;
        match auth_time {
            Some(at) if at >= oldest => Ok(()),
            Some(_) => Err(ProviderError::Invalid("it did not ask for a new sign-in".to_owned())),
            None => Err(ProviderError::Invalid("the ID token lacks auth_time".to_owned())),
        }
    }

    /// Returns the userinfo of the same subject. A failure is not fatal, because it does not identify the user.
    async fn fetch_user_info(
        &self,
        metadata: &Metadata,
        access_token: &AccessToken,
        claims: &CoreIdTokenClaims,
    ) -> Option<CoreUserInfoClaims> {
        let client = self.client(metadata);
        let request = client.user_info(access_token.clone(), Some(claims.subject().clone())).ok()?;
        match request.request_async(&self.http).await {
            Ok(user_info) => Some(user_info),
            Err(error) => {
                tracing::warn!(%error, "failed to fetch the userinfo of a user");
                None
            }
        }
    }
}
