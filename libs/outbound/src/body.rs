//! Reads a response body up to a size limit and a deadline.

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use crate::Error;

/// Returns the body's first `max_bytes` bytes, and the reason if the body is incomplete. An incomplete body is no error
/// here, because the status was already received.
pub(crate) async fn read(
    response: &mut reqwest::Response,
    max_bytes: usize,
    deadline: Instant,
) -> (Bytes, Option<Truncation>) {
    let mut body = BytesMut::new();
    loop {
        match tokio::time::timeout_at(deadline, response.chunk()).await {
            Err(_elapsed) => return (body.freeze(), Some(Truncation::Timeout)),
            Ok(Err(error)) => return (body.freeze(), Some(Truncation::Failed(Error::classify(&error)))),
            Ok(Ok(None)) => return (body.freeze(), None),
            Ok(Ok(Some(chunk))) => {
                let capacity = max_bytes - body.len();
                body.extend_from_slice(chunk.get(..capacity).unwrap_or(&chunk));
                if chunk.len() > capacity {
                    return (body.freeze(), Some(Truncation::Size));
                }
            }
        }
    }
}

/// The reason why a body is incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Truncation {
    Size,
    Timeout,
    Failed(Error),
}
