//! Drains the rest of a request body after an early response, within limits.
//!
//! A server that closes the connection while the client is still writing resets it, and the client may never see the
//! response, such as a 413 or 401.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use futures::StreamExt;
use http::{HeaderMap, header};
use http_body::{Frame, SizeHint};

/// Maximum number of bytes to drain.
const REST_BYTES_MAX: usize = 64 << 20;
/// Timeout of the drain.
const REST_WITHIN: Duration = Duration::from_secs(10);

/// A body that is drained when it is dropped.
struct DrainOnDrop {
    body: Body,
    /// Whether the client sends the body without waiting for `100 Continue`, or has received it already.
    is_coming: bool,
}

/// Wraps a request body so that its unread rest is drained.
pub(crate) fn drain_on_drop(body: Body, headers: &HeaderMap) -> Body {
    if body.is_end_stream() {
        return body;
    }
    Body::new(DrainOnDrop { body, is_coming: !headers.contains_key(header::EXPECT) })
}

impl HttpBody for DrainOnDrop {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.is_coming = true;
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for DrainOnDrop {
    fn drop(&mut self) {
        if !self.is_coming || self.body.is_end_stream() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(read_rest(std::mem::take(&mut self.body)));
        }
    }
}

async fn read_rest(body: Body) {
    let reading = async {
        let mut rest = body.into_data_stream();
        let mut read = 0;
        while let Some(Ok(bytes)) = rest.next().await {
            read += bytes.len();
            if read > REST_BYTES_MAX {
                break;
            }
        }
    };
    // The response has been sent, so a timeout only closes the connection.
    let _cut_off = tokio::time::timeout(REST_WITHIN, reading).await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Returns a body of 1 KB chunks and a counter of the chunks that were read.
    fn pieces(count: usize) -> (Body, Arc<AtomicUsize>) {
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&taken);
        let stream = futures::stream::iter(0..count).map(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok::<_, Error>(Bytes::from_static(&[b'x'; 1024]))
        });
        (Body::from_stream(stream), taken)
    }

    /// Lets spawned tasks run until they are idle.
    async fn settled() {
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn drains_the_rest_of_a_body() {
        let (body, taken) = pieces(50);
        drop(drain_on_drop(body, &HeaderMap::new()));
        settled().await;
        assert_eq!(taken.load(Ordering::SeqCst), 50);
    }

    #[tokio::test]
    async fn stops_draining_at_the_limit() {
        let (body, taken) = pieces(1 << 20);
        drop(drain_on_drop(body, &HeaderMap::new()));
        settled().await;
        assert_eq!(taken.load(Ordering::SeqCst), REST_BYTES_MAX / 1024 + 1);
    }

    #[tokio::test]
    async fn drains_a_body_only_after_100_continue() {
        let headers = HeaderMap::from_iter([(header::EXPECT, "100-continue".parse().unwrap())]);
        let (body, taken) = pieces(50);
        drop(drain_on_drop(body, &headers));
        settled().await;
        assert_eq!(taken.load(Ordering::SeqCst), 0);
        let (body, taken) = pieces(50);
        let mut begun = drain_on_drop(body, &headers).into_data_stream();
        assert!(begun.next().await.is_some());
        drop(begun);
        settled().await;
        assert_eq!(taken.load(Ordering::SeqCst), 50, "the client has received 100 Continue");
    }
}
