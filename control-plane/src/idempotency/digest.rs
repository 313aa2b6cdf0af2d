//! Hashes a request body as the handler reads it. The bytes that the handler left unread are read afterwards.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use futures::{Stream, StreamExt, stream};
use http::request::Parts;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Bounds on reading the part of a body that a handler left unread.
const REST_MAX_BYTES: u64 = 64 * 1024;
const REST_TIMEOUT: Duration = Duration::from_secs(1);

/// Identifies a request by its query and body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Digest {
    sha256: [u8; 32],
    pub(super) bytes: u64,
}

/// A request body that is hashed as it is read.
pub(super) struct HashingBody(Arc<Mutex<State>>);

struct State {
    body: BodyDataStream,
    sha256: Sha256,
    bytes: u64,
    ended: bool,
}

impl HashingBody {
    pub(super) fn new(body: Body, parts: &Parts) -> Self {
        let query = parts.uri.query().unwrap_or_default();
        let mut sha256 = Sha256::new();
        sha256.update((query.len() as u64).to_be_bytes());
        sha256.update(query);
        let body = body.into_data_stream();
        Self(Arc::new(Mutex::new(State { body, sha256, bytes: 0, ended: false })))
    }

    /// The body to pass to the handler.
    pub(super) fn stream(&self) -> Body {
        Body::from_stream(self.chunks())
    }

    /// Returns the digest after the handler has returned. Returns `None` if too much of the body was unread, or the
    /// client disconnected.
    pub(super) async fn finish(self) -> Option<Digest> {
        let read = self.with_state(|state| state.bytes);
        tokio::time::timeout(REST_TIMEOUT, self.digest_up_to(read + REST_MAX_BYTES)).await.ok().flatten()
    }

    /// Returns the digest of a body of at most `max_bytes`. Returns `None` if it is longer, or the client
    /// disconnected.
    pub(super) async fn digest_up_to(self, max_bytes: u64) -> Option<Digest> {
        let mut chunks = std::pin::pin!(self.chunks());
        while self.with_state(|state| state.bytes <= max_bytes) {
            match chunks.next().await {
                Some(Ok(_hashed)) => {}
                Some(Err(_disconnected)) => return None,
                None => return Some(self.with_state(State::digest)),
            }
        }
        None
    }

    fn chunks(&self) -> impl Stream<Item = Result<Bytes, axum::Error>> + use<> {
        let state = Arc::clone(&self.0);
        stream::poll_fn(move |context| {
            state.lock().unwrap_or_else(PoisonError::into_inner).poll_chunk(context)
        })
    }

    fn with_state<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, axum::Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let polled = self.body.poll_next_unpin(context);
        match &polled {
            Poll::Ready(Some(Ok(chunk))) => {
                self.sha256.update(chunk);
                self.bytes += chunk.len() as u64;
            }
            Poll::Ready(None) => self.ended = true,
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled
    }

    fn digest(&self) -> Digest {
        Digest { sha256: self.sha256.clone().finalize().into(), bytes: self.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(uri: &str) -> Parts {
        http::Request::post(uri).body(()).unwrap().into_parts().0
    }

    async fn digest(uri: &str, body: &'static str) -> Digest {
        HashingBody::new(Body::from(body), &parts(uri)).finish().await.unwrap()
    }

    #[tokio::test]
    async fn the_digest_depends_on_query_and_body_but_not_on_chunks() {
        let whole = digest("/x?a=1", "body").await;
        let chunks = ["bo", "", "dy"].map(|chunk| Ok::<_, std::io::Error>(Bytes::from(chunk)));
        let chunked = HashingBody::new(Body::from_stream(stream::iter(chunks)), &parts("/x?a=1"));
        let read = axum::body::to_bytes(chunked.stream(), 100).await.unwrap();
        assert_eq!((&read[..], chunked.finish().await), (&b"body"[..], Some(whole.clone())));
        for (uri, body) in [("/x?a=1", "bodY"), ("/x?a=1", ""), ("/x?a=2", "body"), ("/x?a", "=1body")] {
            assert_ne!(digest(uri, body).await, whole, "{uri} {body}");
        }
    }

    #[tokio::test]
    async fn the_unread_rest_is_read_up_to_a_bound() {
        let of = |bytes: usize| HashingBody::new(Body::from(vec![b'x'; bytes]), &parts("/x"));
        let rest = usize::try_from(REST_MAX_BYTES).unwrap();
        assert_eq!(of(rest).finish().await.map(|digest| digest.bytes), Some(REST_MAX_BYTES));
        assert!(of(rest + 1).finish().await.is_none());
    }

    #[tokio::test]
    async fn an_aborted_body_has_no_digest() {
        let chunks = [Ok(Bytes::from("bo")), Err(std::io::Error::other("gone"))];
        assert!(
            HashingBody::new(Body::from_stream(stream::iter(chunks)), &parts("/x")).finish().await.is_none()
        );
    }
}
