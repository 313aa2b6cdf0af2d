//! Reads of an answer what is wanted and no more, while there is time.

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use crate::Error;

/// The body's first `most` bytes, and why they aren't all: the sender may still be sending, or have fallen silent, when
/// the time is up, or break off. What the status said it has said by then.
pub(crate) async fn read(
    answer: &mut reqwest::Response,
    most: usize,
    until: Instant,
) -> (Bytes, Option<CutShort>) {
    let mut body = BytesMut::new();
    loop {
        match tokio::time::timeout_at(until, answer.chunk()).await {
            Err(_elapsed) => return (body.freeze(), Some(CutShort::Time)),
            Ok(Err(error)) => return (body.freeze(), Some(CutShort::Broken(Error::sort(&error)))),
            Ok(Ok(None)) => return (body.freeze(), None),
            Ok(Ok(Some(chunk))) => {
                let room = most - body.len();
                body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
                if chunk.len() > room {
                    return (body.freeze(), Some(CutShort::Size));
                }
            }
        }
    }
}

/// Why a body isn't whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CutShort {
    Size,
    Time,
    Broken(Error),
}
