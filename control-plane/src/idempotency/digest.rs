//! A request's body, digested as it is read: by the handler first, and what that left by us.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use futures::{Stream, StreamExt, stream};
use http::request::Parts;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Of what a handler didn't read we read so much, and wait so long for it.
const REST_BYTES_MAX: u64 = 64 * 1024;
const REST_WITHIN: Duration = Duration::from_secs(1);

/// What two requests are compared by: query and body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Digest {
    sha256: [u8; 32],
    pub(super) bytes: u64,
}

/// A body on its way to a handler.
pub(super) struct Digested(Arc<Mutex<Reading>>);

struct Reading {
    body: BodyDataStream,
    sha256: Sha256,
    bytes: u64,
    ended: bool,
}

impl Digested {
    pub(super) fn new(body: Body, parts: &Parts) -> Self {
        let query = parts.uri.query().unwrap_or_default();
        let mut sha256 = Sha256::new();
        sha256.update((query.len() as u64).to_be_bytes());
        sha256.update(query);
        let body = body.into_data_stream();
        Self(Arc::new(Mutex::new(Reading { body, sha256, bytes: 0, ended: false })))
    }

    /// The body, for the handler.
    pub(super) fn stream(&self) -> Body {
        Body::from_stream(self.chunks())
    }

    /// The digest, once the handler has ended; none if it left too much unread, or the caller broke off.
    pub(super) async fn finish(self) -> Option<Digest> {
        let read = self.reading(|reading| reading.bytes);
        tokio::time::timeout(REST_WITHIN, self.digest_up_to(read + REST_BYTES_MAX)).await.ok().flatten()
    }

    /// The digest of a body of at most so many bytes; none if it has more, or the caller broke off.
    pub(super) async fn digest_up_to(self, bytes_max: u64) -> Option<Digest> {
        let mut chunks = std::pin::pin!(self.chunks());
        while self.reading(|reading| reading.bytes <= bytes_max) {
            match chunks.next().await {
                Some(Ok(_digested)) => {}
                Some(Err(_broken_off)) => return None,
                None => return Some(self.reading(Reading::digest)),
            }
        }
        None
    }

    fn chunks(&self) -> impl Stream<Item = Result<Bytes, axum::Error>> + use<> {
        let reading = Arc::clone(&self.0);
        stream::poll_fn(move |context| {
            reading.lock().unwrap_or_else(PoisonError::into_inner).poll_chunk(context)
        })
    }

    fn reading<T>(&self, look: impl FnOnce(&Reading) -> T) -> T {
        look(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Reading {
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
        Digested::new(Body::from(body), &parts(uri)).finish().await.unwrap()
    }

    #[tokio::test]
    async fn a_request_is_known_by_query_and_body_however_it_is_read() {
        let whole = digest("/x?a=1", "body").await;
        let chunks = ["bo", "", "dy"].map(|chunk| Ok::<_, std::io::Error>(Bytes::from(chunk)));
        let read_by_a_handler = Digested::new(Body::from_stream(stream::iter(chunks)), &parts("/x?a=1"));
        let read = axum::body::to_bytes(read_by_a_handler.stream(), 100).await.unwrap();
        assert_eq!((&read[..], read_by_a_handler.finish().await), (&b"body"[..], Some(whole.clone())));
        for (uri, body) in [("/x?a=1", "bodY"), ("/x?a=1", ""), ("/x?a=2", "body"), ("/x?a", "=1body")] {
            assert_ne!(digest(uri, body).await, whole, "{uri} {body}");
        }
    }

    #[tokio::test]
    async fn what_a_handler_left_is_read_to_a_bound() {
        let of = |bytes: usize| Digested::new(Body::from(vec![b'x'; bytes]), &parts("/x"));
        let rest = usize::try_from(REST_BYTES_MAX).unwrap();
        assert_eq!(of(rest).finish().await.map(|digest| digest.bytes), Some(REST_BYTES_MAX));
        assert!(of(rest + 1).finish().await.is_none());
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_has_no_digest() {
        let chunks = [Ok(Bytes::from("bo")), Err(std::io::Error::other("gone"))];
        assert!(
            Digested::new(Body::from_stream(stream::iter(chunks)), &parts("/x")).finish().await.is_none()
        );
    }
}
