//! The redirect from http to https.

use axum::body::Body;
use axum::extract::Request;
use axum::response::IntoResponse;
use http::{HeaderValue, Response, StatusCode, header};

use super::challenges::is_http_challenge;
use super::server_name::certificate_name;
use crate::sites::classify_host::requested_host;
use crate::state::EdgeState;

/// How long a browser may remember a redirect: the host may lose its certificate, or move elsewhere.
const MAX_AGE: &str = "max-age=3600";

/// The address of a request over https, and the certificate that it needs.
pub(crate) struct HttpsAddress {
    certificate_name: String,
    location: HeaderValue,
}

impl HttpsAddress {
    /// `None` for challenges of certificate authorities. All methods are redirected: 308 keeps the method and the body.
    pub(crate) fn of(state: &EdgeState, request: &Request) -> Option<Self> {
        if is_http_challenge(request.uri().path()) {
            return None;
        }
        let host = requested_host(request.version(), request.headers(), request.uri())?;
        let certificate_name = certificate_name(&state.addresses, Some(&host))?.into_owned();
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let location = HeaderValue::from_str(&format!("{}{path}", state.addresses.at(&host))).ok()?;
        Some(Self { certificate_name, location })
    }

    /// Returns the redirect if the host has a certificate. While Postgres does not answer, only a cached certificate counts.
    pub(crate) async fn redirect(self, state: &EdgeState) -> Option<Response<Body>> {
        state.tls.as_ref()?.find_certificate(&self.certificate_name).await.ok()??;
        let max_age = HeaderValue::from_static(MAX_AGE);
        let headers = [(header::LOCATION, self.location), (header::CACHE_CONTROL, max_age)];
        Some((StatusCode::PERMANENT_REDIRECT, headers).into_response())
    }
}
