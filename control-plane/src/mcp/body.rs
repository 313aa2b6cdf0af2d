//! The body of a message, as it arrives.

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use rmcp::model::ErrorCode;
use uuid::Uuid;
use web::Problem;

use super::message::{Refusal, refuse};
use crate::App;
use crate::large_bodies::BodyShare;

/// Upper bound of a message.
const BYTES_MAX: usize = 4 << 20;
/// A body up to this size is small.
const SMALL_BYTES: usize = 64 << 10;

/// A body that has arrived, with its share of the memory for large bodies.
pub(super) struct Arrived {
    pub(super) bytes: Bytes,
    pub(super) share: BodyShare,
}

/// Returns the announced length of a body.
///
/// # Errors
/// 413 if it is too long.
pub(super) fn announced(headers: &HeaderMap) -> Result<Option<usize>, Box<Response>> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length| length > BYTES_MAX) { Err(Box::new(too_large())) } else { Ok(length) }
}

/// Returns whether a body of this announced length is small.
pub(super) fn is_small(announced: Option<usize>) -> bool {
    announced.is_some_and(|length| length <= SMALL_BYTES)
}

/// Reads a body within the time that any body may take.
pub(super) async fn read(
    app: &App,
    account_id: Uuid,
    announced: Option<usize>,
    mut body: Body,
) -> Result<Arrived, Box<Response>> {
    let budget = &app.body_budget;
    let mut share = budget.share(account_id);
    // What is announced may never come.
    let mut arrived = Vec::with_capacity(announced.unwrap_or(0).min(SMALL_BYTES));
    let receive = async {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return Err(Box::new(broken_off())) };
            let Ok(chunk) = frame.into_data() else { continue };
            if arrived.len() + chunk.len() > BYTES_MAX {
                return Err(Box::new(too_large()));
            }
            let grown = budget.grow(&mut share, chunk.len()).await;
            grown.map_err(|problem: Problem| Box::new(problem.into_response()))?;
            arrived.extend_from_slice(&chunk);
        }
        Ok(())
    };
    let received = tokio::time::timeout(budget.receive_timeout(), receive).await;
    received.unwrap_or_else(|_elapsed| Err(Box::new(broken_off())))?;
    Ok(Arrived { bytes: arrived.into(), share })
}

fn too_large() -> Response {
    let message = format!(
        "a message has at most {BYTES_MAX} bytes; send larger sites by HTTP: POST /api/launch or POST /api/pages/batch"
    );
    let refusal = Refusal::new(ErrorCode::INVALID_REQUEST, message);
    refuse(StatusCode::PAYLOAD_TOO_LARGE, None, &refusal.error)
}

fn broken_off() -> Response {
    let refusal = Refusal::new(ErrorCode::PARSE_ERROR, "the body broke off or arrived too slowly");
    refuse(StatusCode::BAD_REQUEST, None, &refusal.error)
}
