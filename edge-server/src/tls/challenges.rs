//! The answers to certificate authorities, which check over HTTP or TLS that this installation serves a host.
//!
//! Anyone may ask for invented tokens. A negative answer can't be cached, not even for a moment: an authority checks a
//! challenge milliseconds after its creation, and a wrong answer ends the order. So all requests that wait share one read of
//! all pending challenges, which are few, and reads follow each other with a pause. However many tokens are invented, they
//! cost twenty small queries a second, and the check of an authority waits for one read and a pause at most.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use http::{HeaderValue, Response, header};
use service::Clock;
use store::read_pool::{ReadError, ReadPool};
use store::tls_certificates::{PendingChallenge, list_pending_challenges};
use tokio::time::Interval;
use web::Problem;

/// The folder of HTTP-01 challenges (RFC 8555, 8.3).
const HTTP_PATH: &str = "/.well-known/acme-challenge/";
/// The kinds of challenges, as stored.
const HTTP: &str = "http-01";
const ALPN: &str = "tls-alpn-01";
/// The least time between the starts of two reads.
const READ_INTERVAL: Duration = Duration::from_millis(50);
/// The longest token. Certificate authorities use 43 characters.
const MAX_TOKEN_LEN: usize = 128;

/// The pending challenges in Postgres.
pub(crate) struct Challenges(Arc<Reads>);

struct Reads {
    lookups: ReadPool,
    clock: Clock,
    /// A read that has not begun yet: it will find the challenges of all requests that arrive until then.
    next: Mutex<Option<Read>>,
    /// Held by the read in progress.
    turn: tokio::sync::Mutex<Interval>,
}

type Pending = Result<Arc<[PendingChallenge]>, Arc<ReadError>>;
type Read = Shared<BoxFuture<'static, Pending>>;

impl Challenges {
    /// Must be called within a Tokio runtime.
    pub(crate) fn new(lookups: ReadPool, clock: Clock) -> Self {
        let turn = tokio::sync::Mutex::new(service::ticks(READ_INTERVAL));
        Self(Arc::new(Reads { lookups, clock, next: Mutex::default(), turn }))
    }

    /// Returns the response to an HTTP-01 challenge of `host`; `None` if the path belongs to none that is pending.
    pub(crate) async fn respond(&self, host: &str, path: &str) -> Option<Response<Body>> {
        let token = http_token(path)?;
        match self.pending().await {
            Ok(pending) => {
                let is_asked =
                    |one: &&PendingChallenge| one.kind == HTTP && one.name == host && one.token == token;
                let key_authorization = pending.iter().find(is_asked)?.key_authorization.clone();
                let plain = (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
                Some(([plain], key_authorization).into_response())
            }
            Err(_unavailable) => Some(Problem::nothing_changed().into_response()),
        }
    }

    /// Returns the key authorization of the newest pending TLS-ALPN-01 challenge of a host.
    pub(super) async fn find_alpn(&self, host: &str) -> Result<Option<String>, Arc<ReadError>> {
        let pending = self.pending().await?;
        let newest = pending.iter().find(|one| one.kind == ALPN && one.name == host);
        Ok(newest.map(|one| one.key_authorization.clone()))
    }

    /// Returns the challenges of a read that begins after this call.
    async fn pending(&self) -> Pending {
        let start = || Arc::clone(&self.0).read().boxed().shared();
        let read = self.0.next().get_or_insert_with(start).clone();
        read.await
    }
}

impl Reads {
    async fn read(self: Arc<Self>) -> Pending {
        let mut turn = self.turn.lock().await;
        turn.tick().await;
        // Later requests need another read: this one may miss their challenges.
        *self.next() = None;
        let now = self.clock.now();
        let list = async |conn: &mut store::Conn| list_pending_challenges(conn, now).await;
        self.lookups.query(list).await.map(Arc::from).map_err(Arc::new)
    }

    fn next(&self) -> MutexGuard<'_, Option<Read>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
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
