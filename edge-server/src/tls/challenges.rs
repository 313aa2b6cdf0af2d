//! The answers to certificate authorities, which check over HTTP or TLS that this installation serves a host.

use axum::body::Body;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use http::{HeaderValue, Response, header};
use store::read_pool::{ReadError, ReadPool};
use store::tls_certificates as certificates;
use tokio::sync::Semaphore;
use web::Problem;

/// The folder of HTTP-01 challenges (RFC 8555, 8.3).
const HTTP_PATH: &str = "/.well-known/acme-challenge/";
/// Concurrent lookups. Anyone may ask for invented tokens; they must not take all connections for lookups.
const MAX_LOOKUPS: usize = 2;
/// The longest token. Certificate authorities use 43 characters.
const MAX_TOKEN_LEN: usize = 128;

/// The pending challenges in Postgres. They are not cached: each is asked for a few times within seconds of its creation.
pub(crate) struct Challenges {
    lookups: ReadPool,
    permits: Semaphore,
}

impl Challenges {
    pub(crate) fn new(lookups: ReadPool) -> Self {
        Self { lookups, permits: Semaphore::new(MAX_LOOKUPS) }
    }

    /// Returns the response to an HTTP-01 challenge of `host`; `None` if the path belongs to none that is pending.
    pub(crate) async fn respond(&self, host: &str, path: &str, now: DateTime<Utc>) -> Option<Response<Body>> {
        let token = http_token(path)?;
        let find =
            async |conn: &mut store::Conn| certificates::find_http_challenge(conn, token, host, now).await;
        match self.query(find).await {
            Ok(key_authorization) => {
                let plain = (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
                Some(([plain], key_authorization?).into_response())
            }
            Err(_unavailable) => Some(Problem::nothing_changed().into_response()),
        }
    }

    /// Returns the key authorization of a pending TLS-ALPN-01 challenge.
    pub(super) async fn find_alpn(
        &self,
        host: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<String>, ReadError> {
        self.query(async |conn| certificates::find_alpn_challenge(conn, host, now).await).await
    }

    async fn query<T>(
        &self,
        query: impl AsyncFnOnce(&mut store::Conn) -> Result<T, store::Error>,
    ) -> Result<T, ReadError> {
        let _permit = self.permits.acquire().await;
        self.lookups.query(query).await
    }
}

/// Returns whether a path belongs to a challenge, so that no page answers there.
pub(crate) fn is_http_challenge(path: &str) -> bool {
    path.starts_with(HTTP_PATH)
}

/// Returns the token of a challenge's path.
fn http_token(path: &str) -> Option<&str> {
    let token = path.strip_prefix(HTTP_PATH)?;
    let is_base64url = token.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    ((1..=MAX_TOKEN_LEN).contains(&token.len()) && is_base64url).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_segment_of_base64url() {
        assert_eq!(http_token("/.well-known/acme-challenge/aB-_9"), Some("aB-_9"));
        let long = format!("/.well-known/acme-challenge/{}", "a".repeat(MAX_TOKEN_LEN + 1));
        for path in [
            "/.well-known/acme-challenge/",
            "/.well-known/acme-challenge",
            "/.well-known/acme-challenge/a/b",
            "/.well-known/acme-challenge/a%20b",
            "/.well-known/acme-challenge/..",
            "/acme-challenge/a",
            &long,
        ] {
            assert_eq!(http_token(path), None, "{path}");
        }
    }
}
