//! Request bodies that must keep coming: a visitor who dribbles them in is cut off.
//!
//! What counts is the time spent waiting for the visitor, never the time we take to read. Each byte that comes buys
//! a little more of it, so that a long upload over a slow line is no crime, and a byte a second is one; but however much
//! has come, nobody may stand still for long.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

/// Slower than this, over all of it, nobody sends: a tenth of a bad modem.
const BYTES_PER_SECOND_MIN: u64 = 500;

/// So many times the patience may be left at most.
const SAVED_MAX: u32 = 3;

/// A body whose sender may not let us wait.
pub(crate) struct MinRateBody<B> {
    body: B,
    /// What may still be waited.
    left: Duration,
    /// What may be saved of that.
    most: Duration,
    /// Since when we wait, and what wakes us when it has been too long.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

/// The body came too slowly.
#[derive(Debug, thiserror::Error)]
#[error("the request's body came too slowly")]
pub(crate) struct TooSlow;

impl<B> MinRateBody<B> {
    pub(crate) fn new(body: B, patience: Duration) -> Self {
        Self { body, left: patience, most: patience * SAVED_MAX, waiting: None }
    }

    fn earn(&mut self, bytes: usize) {
        let bought = Duration::from_micros(bytes as u64 * 1_000_000 / BYTES_PER_SECOND_MIN);
        self.left = self.most.min(self.left + bought);
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
                self.left = self.left.saturating_sub(since.elapsed());
            }
            if let Some(Ok(frame)) = &frame {
                self.earn(frame.data_ref().map_or(0, Bytes::len));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let left = self.left;
        #[expect(clippy::disallowed_methods, reason = "the limit is a time")]
        let (_, timer) =
            self.waiting.get_or_insert_with(|| (Instant::now(), Box::pin(tokio::time::sleep(left))));
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

    /// So many frames of so many bytes, one every `pause`.
    fn dribbling(
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

    async fn read<B>(body: B, patience: Duration) -> Result<usize, String>
    where
        B: Body<Data = Bytes, Error = axum::BoxError> + Unpin,
    {
        let read = MinRateBody::new(body, patience).collect().await;
        read.map(|all| all.to_bytes().len()).map_err(|error| error.to_string())
    }

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn a_body_that_stops_or_dribbles_is_cut_off() {
        let stops = dribbling(1, 1, Duration::from_secs(3_600));
        assert!(read(stops, 20 * MILLISECOND).await.unwrap_err().contains("too slowly"));
        // Each byte buys two milliseconds and costs five.
        let dribbles = dribbling(100_000, 1, 5 * MILLISECOND);
        assert!(read(dribbles, 100 * MILLISECOND).await.unwrap_err().contains("too slowly"));
    }

    #[tokio::test]
    async fn what_came_fast_buys_nobody_a_long_rest() {
        let much = Ok::<_, axum::BoxError>(Frame::data(Bytes::from(vec![b'x'; 10 << 20])));
        let rests = futures::stream::iter([much]).chain(futures::stream::pending());
        // The bytes alone would have bought hours.
        let read = read(StreamBody::new(rests), 20 * MILLISECOND);
        let read = tokio::time::timeout(Duration::from_secs(60), read).await.unwrap();
        assert!(read.unwrap_err().contains("too slowly"));
    }

    #[tokio::test]
    async fn a_body_that_keeps_coming_is_read_however_long_it_takes() {
        // Far longer than the patience in all, and a second is bought with each frame.
        let comes = dribbling(100, 500, 2 * MILLISECOND);
        assert_eq!(read(comes, 100 * MILLISECOND).await, Ok(50_000));
    }
}
