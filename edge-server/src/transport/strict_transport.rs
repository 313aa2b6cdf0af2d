//! `Strict-Transport-Security` (RFC 6797) on the responses of custom domains over https that are not from the caches: of
//! files, redirects and errors. Cached responses have it from the site cache.

use axum::extract::Request;
use http::{HeaderMap, HeaderValue, header};

use crate::sites::classify_host::{HostKind, SiteHost, classify_host, requested_host};
use crate::state::EdgeState;

/// A custom domain that was requested over https.
pub(super) struct CustomDomain(String);

impl CustomDomain {
    /// Returns the domain of a request; `None` if it is for another host.
    pub(super) fn of(state: &EdgeState, request: &Request) -> Option<Self> {
        let host = requested_host(request.version(), request.headers(), request.uri())?;
        let is_custom = matches!(classify_host(&state.addresses, &host), HostKind::Site(SiteHost::Custom(_)));
        is_custom.then_some(Self(host))
    }

    /// Sets the policy of the domain, if it has one. The site is cached, because the response was made from it.
    pub(super) async fn set_policy(&self, state: &EdgeState, headers: &mut HeaderMap) {
        let Ok(found) = state.sites.find(SiteHost::Custom(&self.0), state.clock.now()).await else { return };
        let policy = found.value.as_ref().and_then(|site| HeaderValue::from_str(site.hsts.as_deref()?).ok());
        if let Some(policy) = policy {
            headers.insert(header::STRICT_TRANSPORT_SECURITY, policy);
        }
    }
}
