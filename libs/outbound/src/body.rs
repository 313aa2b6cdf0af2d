//! Reads of an answer what is wanted and no more, while there is time.

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use crate::Error;

/// The body's first `most` bytes, and whether there was or may have been more: the sender may still be sending, or
/// have fallen silent, when the time is up.
pub(crate) async fn read(
    answer: &mut reqwest::Response,
    most: usize,
    until: Instant,
) -> Result<(Bytes, Option<CutShort>), Error> {
    let mut body = BytesMut::new();
    loop {
        match tokio::time::timeout_at(until, answer.chunk()).await {
            Err(_elapsed) => return Ok((body.freeze(), Some(CutShort::ByTime))),
            Ok(Err(error)) => return Err(Error::sort(&error)),
            Ok(Ok(None)) => return Ok((body.freeze(), None)),
            Ok(Ok(Some(chunk))) => {
                let room = most - body.len();
                body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
                if chunk.len() > room {
                    return Ok((body.freeze(), Some(CutShort::BySize)));
                }
            }
        }
    }
}

/// Why a body isn't whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutShort {
    BySize,
    ByTime,
}
