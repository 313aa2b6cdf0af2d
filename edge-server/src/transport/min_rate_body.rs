//! Request bodies with a minimum rate: a client that sends too slowly gets an error.
//!
//! Only time spent waiting for the client counts, not the time the server takes to read. Every byte that arrives adds
//! to the time budget, so a long upload over a slow line succeeds and one byte a second does not. The budget is capped:
//! however much has arrived, the client can't pause for long.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

/// Minimum rate over the whole body: a tenth of a slow modem.
const BYTES_PER_SECOND_MIN: u64 = 500;

/// Cap of the time budget, as a multiple of the configured timeout.
const BUDGET_FACTOR_MAX: u32 = 3;

/// A body that fails with [`TooSlow`] when its time budget is used up.
pub(crate) struct MinRateBody<B> {
    body: B,
    /// Time that may still be spent waiting.
    budget: Duration,
    max_budget: Duration,
    /// Start of the current wait, and the timer that ends it.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

/// The client sent its request body too slowly.
#[derive(Debug, thiserror::Error)]
#[error("the request body arrived too slowly")]
pub(crate) struct TooSlow;

impl<B> MinRateBody<B> {
    pub(crate) fn new(body: B, timeout: Duration) -> Self {
        Self { body, budget: timeout, max_budget: timeout * BUDGET_FACTOR_MAX, waiting: None }
    }

    fn extend_budget(&mut self, bytes: usize) {
        let earned = Duration::from_micros(bytes as u64 * 1_000_000 / BYTES_PER_SECOND_MIN);
        self.budget = self.max_budget.min(self.budget + earned);
    }
}

impl<B> Body for MinRateBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            if let Some((since, _)) = self.waiting.take() {
                self.budget = self.budget.saturating_sub(since.elapsed());
            }
            if let Some(Ok(frame)) = &frame {
                self.extend_budget(frame.data_ref().map_or(0, Bytes::len));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let budget = self.budget;
        #[expect(clippy::disallowed_methods, reason = "the limit is a time")]
        let (_, timer) =
            self.waiting.get_or_insert_with(|| (Instant::now(), Box::pin(tokio::time::sleep(budget))));
        match timer.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Some(Err(TooSlow.into()))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    /// A body of `frames` frames of `bytes` bytes each, one every `pause`.
    fn slow_body(
        frames: usize,
        bytes: usize,
        pause: Duration,
    ) -> impl Body<Data = Bytes, Error = axum::BoxError> + Unpin {
        let frames = futures::stream::iter(0..frames).then(move |_| async move {
            #[expect(clippy::disallowed_methods, reason = "the pause is what is tested")]
            tokio::time::sleep(pause).await;
            Ok::<_, axum::BoxError>(Frame::data(Bytes::from(vec![b'x'; bytes])))
        });
        StreamBody::new(Box::pin(frames))
    }

    async fn read<B>(body: B, timeout: Duration) -> Result<usize, String>
    where
        B: Body<Data = Bytes, Error = axum::BoxError> + Unpin,
    {
        let read = MinRateBody::new(body, timeout).collect().await;
        read.map(|all| all.to_bytes().len()).map_err(|error| error.to_string())
    }

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn fails_a_body_that_stops_or_trickles() {
        let stops = slow_body(1, 1, Duration::from_secs(3_600));
        assert!(read(stops, 20 * MILLISECOND).await.unwrap_err().contains("too slowly"));
        // Each byte earns two milliseconds and takes five.
        let trickles = slow_body(100_000, 1, 5 * MILLISECOND);
        assert!(read(trickles, 100 * MILLISECOND).await.unwrap_err().contains("too slowly"));
    }

    #[tokio::test]
    async fn a_fast_start_does_not_allow_a_long_pause() {
        let much = Ok::<_, axum::BoxError>(Frame::data(Bytes::from(vec![b'x'; 10 << 20])));
        let pauses = futures::stream::iter([much]).chain(futures::stream::pending());
        // Without the cap the bytes would have earned hours.
        let read = read(StreamBody::new(pauses), 20 * MILLISECOND);
        let read = tokio::time::timeout(Duration::from_secs(60), read).await.unwrap();
        assert!(read.unwrap_err().contains("too slowly"));
    }

    #[tokio::test]
    async fn reads_a_steady_body_however_long_it_takes() {
        // It takes far longer than the timeout in all, and each frame earns a second.
        let steady = slow_body(100, 500, 2 * MILLISECOND);
        assert_eq!(read(steady, 100 * MILLISECOND).await, Ok(50_000));
    }
}
