//! OpenID Connect: a provider describes itself, and signs what it says of people.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use cache::{Bounds, Fresh};
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthenticationFlow, CoreClaimName, CoreClaimType, CoreClient, CoreClientAuthMethod,
    CoreGrantType, CoreIdToken, CoreIdTokenClaims, CoreJsonWebKey, CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm, CoreJwsSigningAlgorithm as Alg, CoreResponseMode, CoreResponseType,
    CoreSubjectIdentifierType, CoreUserInfoClaims,
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
use store::identities::Vouched;
use url::Url;

use super::calls::Calls;
use super::{Brought, Refusal, Secrets};
use crate::signin::config;

/// A provider signs with its own key. Never "none", never with a secret that we know too.
const SIGNATURES: [Alg; 8] = [
    Alg::RsaSsaPkcs1V15Sha256,
    Alg::RsaSsaPkcs1V15Sha384,
    Alg::RsaSsaPkcs1V15Sha512,
    Alg::RsaSsaPssSha256,
    Alg::RsaSsaPssSha384,
    Alg::EcdsaP256Sha256,
    Alg::EcdsaP384Sha384,
    Alg::EdDsa,
];

/// What a provider says of itself, its keys included.
type Description = ProviderMetadata<
    NamesItself,
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

/// A client of a provider that has described itself.
type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// Whether people come back with the provider's name in the address (RFC 9207).
#[derive(Debug, Clone, Serialize, Deserialize)]
struct NamesItself {
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl AdditionalProviderMetadata for NamesItself {}

/// One provider.
pub(super) struct Oidc {
    issuer: IssuerUrl,
    client_id: ClientId,
    client_secret: Option<ClientSecret>,
    callback: RedirectUrl,
    calls: Calls,
    known: Fresh<(), Arc<Description>>,
    clock: Clock,
}

impl Oidc {
    pub(super) fn new(
        issuer: &str,
        settings: &config::Provider,
        callback: String,
        discovery_every: Duration,
        calls: Calls,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let secret = settings.client_secret.expose_secret();
        let bounds =
            Bounds { max_bytes: 1, fresh_for: discovery_every, retry_after: Duration::from_secs(10) };
        Ok(Self {
            issuer: IssuerUrl::new(issuer.to_owned()).context("issuer is no address")?,
            client_id: ClientId::new(settings.client_id.clone()),
            client_secret: (!secret.is_empty()).then(|| ClientSecret::new(secret.to_owned())),
            callback: RedirectUrl::new(callback)?,
            calls,
            known: Fresh::new(bounds, |(), _| 1),
            clock,
        })
    }

    pub(super) async fn authorize(&self, secrets: &Secrets) -> Result<Url, Refusal> {
        let client = self.client(&*self.describe().await?);
        let verifier = PkceCodeVerifier::new(secrets.pkce_verifier.clone());
        let (state, nonce) = (CsrfToken::new(secrets.state.clone()), Nonce::new(secrets.nonce.clone()));
        let (url, _, _) = client
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, move || state, move || nonce)
            .add_scope(Scope::new("email".to_owned()))
            .add_scope(Scope::new("profile".to_owned()))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
            .url();
        Ok(url)
    }

    pub(super) async fn identify(&self, brought: Brought<'_>, secrets: &Secrets) -> Result<Vouched, Refusal> {
        let description = self.describe().await?;
        self.check_sender(&description, brought.issuer)?;
        let client = self.client(&description);
        let exchange = client
            .exchange_code(AuthorizationCode::new(brought.code))
            .map_err(|error| Refusal::Away(error.to_string()))?
            .set_pkce_verifier(PkceCodeVerifier::new(secrets.pkce_verifier.clone()));
        let tokens = exchange.request_async(&self.calls).await.map_err(|error| match error {
            RequestTokenError::Request(error) => Refusal::Away(error.to_string()),
            RequestTokenError::ServerResponse(answer) => Refusal::Unbelievable(answer.to_string()),
            other => Refusal::Away(other.to_string()),
        })?;
        let id_token =
            tokens.id_token().ok_or_else(|| Refusal::Unbelievable("there is no ID token".to_owned()))?;
        let claims = self.verify(client, id_token, &Nonce::new(secrets.nonce.clone())).await?;
        let mut who = Vouched {
            issuer: self.issuer.to_string(),
            subject: claims.subject().to_string(),
            email: claims.email().and_then(|email| domain::sign_ins::shown(email)),
            email_verified: claims.email_verified().unwrap_or_default(),
            name: claims.name().and_then(|name| domain::sign_ins::shown(name.get(None)?)),
        };
        // Many providers say more to those who ask with the access token.
        if who.email.is_none()
            && let Some(more) = self.ask_more(&description, tokens.access_token(), &claims).await
        {
            who.email = more.email().and_then(|email| domain::sign_ins::shown(email));
            who.email_verified = more.email_verified().unwrap_or_default();
            who.name = who.name.or_else(|| domain::sign_ins::shown(more.name()?.get(None)?));
        }
        Ok(who)
    }

    /// What the provider says of itself, remembered for a while.
    async fn describe(&self) -> Result<Arc<Description>, Refusal> {
        let ask = async {
            let asked = Description::discover_async(self.issuer.clone(), &self.calls).await;
            asked.map(Arc::new).map_err(|error| match error {
                DiscoveryError::Request(error) => Refusal::Away(error.to_string()),
                other => Refusal::Away(format!("its description of itself can't be used: {other}")),
            })
        };
        Ok(self.known.get(&(), Instant::now(), ask).await?.value)
    }

    fn client(&self, description: &Description) -> Client {
        let methods = description.token_endpoint_auth_methods_supported();
        let takes = |method| methods.is_none_or(|methods| methods.contains(&method));
        let auth_type = if takes(CoreClientAuthMethod::ClientSecretBasic) {
            AuthType::BasicAuth
        } else {
            AuthType::RequestBody
        };
        let (client_id, secret) = (self.client_id.clone(), self.client_secret.clone());
        CoreClient::from_provider_metadata(description.clone(), client_id, secret)
            .set_redirect_uri(self.callback.clone())
            .set_auth_type(auth_type)
    }

    /// Refuses what another provider sent: it would have the code exchanged in the wrong place (RFC 9207).
    fn check_sender(&self, description: &Description, issuer: Option<&str>) -> Result<(), Refusal> {
        let must_say = description.additional_metadata().authorization_response_iss_parameter_supported;
        match issuer {
            Some(issuer) if issuer == self.issuer.as_str() => Ok(()),
            None if !must_say => Ok(()),
            Some(_) => Err(Refusal::Unbelievable("another issuer sent it".to_owned())),
            None => Err(Refusal::Unbelievable("it doesn't say who sent it".to_owned())),
        }
    }

    /// What a token says, if the provider signed it for us, for this attempt, and not long ago. A signature by a key
    /// we don't know may be by a new one, so the provider is asked once more.
    async fn verify(
        &self,
        client: Client,
        id_token: &CoreIdToken,
        nonce: &Nonce,
    ) -> Result<CoreIdTokenClaims, Refusal> {
        let read = |client: &Client| {
            let clock = self.clock.clone();
            let verifier =
                client.id_token_verifier().set_allowed_algs(SIGNATURES).set_time_fn(move || clock.now());
            id_token.claims(&verifier, nonce).cloned()
        };
        let claims = match read(&client) {
            Err(ClaimsVerificationError::SignatureVerification(_)) => {
                self.known.invalidate(&());
                read(&self.client(&*self.describe().await?))
            }
            other => other,
        };
        claims.map_err(|error| Refusal::Unbelievable(error.to_string()))
    }

    /// What the provider says of the same person elsewhere. Nobody is recognised by it, so without it we go on.
    async fn ask_more(
        &self,
        description: &Description,
        access_token: &AccessToken,
        claims: &CoreIdTokenClaims,
    ) -> Option<CoreUserInfoClaims> {
        let client = self.client(description);
        let request = client.user_info(access_token.clone(), Some(claims.subject().clone())).ok()?;
        match request.request_async(&self.calls).await {
            Ok(more) => Some(more),
            Err(error) => {
                tracing::warn!(%error, "a provider doesn't tell an e-mail");
                None
            }
        }
    }
}
