//! A response body that marks its connection as active while the server still has to produce more of it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use service::EarlyRequest;

use super::connections::{ActiveResponse, Connection};

/// Counts as an active response of its connection while `body` has no frame ready. A frame that is ready but not taken,
/// as by an HTTP/2 client with a closed window, does not count: the client is the one who waits.
pub(crate) struct TrackedBody<B> {
    body: B,
    connection: Arc<Connection>,
    pending: Option<ActiveResponse>,
    /// Held until the body is sent: the drain waits for it.
    _request: Option<EarlyRequest>,
}

impl<B> TrackedBody<B> {
    /// Takes over from `active`, which covered the time until the body was there.
    pub(crate) fn new(body: B, active: &ActiveResponse, request: Option<EarlyRequest>) -> Self {
        Self { body, connection: Arc::clone(active.connection()), pending: None, _request: request }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for TrackedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if frame.is_ready() {
            self.pending = None;
        } else if self.pending.is_none() {
            self.pending = Some(self.connection.begin_response());
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
