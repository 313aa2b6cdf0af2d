//! Reads the body of a request that is answered without it.

use axum::body::Body;
use futures::StreamExt;
use http::{HeaderMap, header};

/// A longer body is not read to its end; the connection is closed behind the response.
const MAX_BYTES: usize = 1024 * 1024;

/// Reads a body, and forgets it. A connection that is closed while its client still sends may lose the response. A client
/// that waits for `100 Continue` sends no body.
pub(crate) async fn discard(headers: &HeaderMap, body: Body) {
    if headers.contains_key(header::EXPECT) {
        return;
    }
    let (mut stream, mut read) = (body.into_data_stream(), 0);
    while let Some(Ok(bytes)) = stream.next().await {
        read += bytes.len();
        if read > MAX_BYTES {
            return;
        }
    }
}
