//! A response body that counts as a call under way until it is written.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};

use super::calls::CallPermit;

/// Holds its permit until the server has taken the whole body, or has dropped it because the client disconnected.
pub(super) struct AdmittedBody {
    body: Body,
    _permit: Arc<CallPermit>,
}

impl AdmittedBody {
    pub(super) fn new(body: Body, permit: Arc<CallPermit>) -> Self {
        Self { body, _permit: permit }
    }
}

impl HttpBody for AdmittedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
