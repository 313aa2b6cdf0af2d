//! The values that the authorization code flow passes between its two requests.

use std::time::Duration;

use service::Rng;

use crate::signin::token;

/// The secrets of one sign-in, each a random token.
pub(in crate::signin) struct FlowSecrets {
    /// Returned by the browser in the callback.
    pub(in crate::signin) state: String,
    /// Returned by the provider in the ID token.
    pub(in crate::signin) nonce: String,
    /// The redirect carries only its hash; the code exchange carries the verifier itself.
    pub(in crate::signin) pkce_verifier: String,
    /// The greatest age of the sign-in at the provider; `None` for any.
    pub(in crate::signin) fresh_for: Option<Duration>,
}

impl FlowSecrets {
    pub(in crate::signin) fn new(rng: &Rng, fresh_for: Option<Duration>) -> Self {
        let token = || token::generate(rng);
        Self { state: token(), nonce: token(), pkce_verifier: token(), fresh_for }
    }
}

/// The parameters of a successful callback.
pub(in crate::signin) struct CallbackParams<'a> {
    /// The authorization code.
    pub(in crate::signin) code: String,
    /// The issuer that the callback names (RFC 9207).
    pub(in crate::signin) issuer: Option<&'a str>,
}

/// The reason why a provider did not identify a visitor.
#[derive(Debug, thiserror::Error)]
pub(in crate::signin) enum ProviderError {
    /// No usable response; a later attempt may succeed.
    #[error("the provider is unavailable: {0}")]
    Unavailable(String),
    /// The callback or the provider's response failed a check.
    #[error("the provider's response is invalid: {0}")]
    Invalid(String),
}
