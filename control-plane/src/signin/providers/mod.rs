//! Identity providers: OpenID Connect and GitHub, behind one [`Provider`].

mod client;
mod flow;
mod github;
mod oidc;
mod provider;

pub(super) use flow::{CallbackParams, FlowSecrets, ProviderError};
pub use provider::{Provider, Providers};
