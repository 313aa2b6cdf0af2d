//! `closesAt` in requests: an instant, or a time or a day in the time zone of the account.

use chrono::{DateTime, Utc};
use domain::analytics::Zone;
use domain::{FieldError, timestamps};
use store::Conn;
use uuid::Uuid;
use web::Problem;

/// Parses the text. An error is returned beside other errors of the request, as the inner one.
pub(super) async fn parse(
    conn: &mut Conn,
    account_id: Uuid,
    text: Option<&str>,
) -> Result<Result<Option<DateTime<Utc>>, FieldError>, Problem> {
    let Some(text) = text else { return Ok(Ok(None)) };
    // Not the zone of the cached caller: it may have been changed by the call before.
    let account = store::accounts::find_account(conn, account_id).await?;
    let zone: Zone = account.and_then(|account| account.timezone.parse().ok()).unwrap_or(Zone::UTC);
    let parsed = timestamps::parse_in(zone, text);
    Ok(parsed.map(Some).ok_or_else(|| timestamps::unreadable("closesAt", zone)))
}
