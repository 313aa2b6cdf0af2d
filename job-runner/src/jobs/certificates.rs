//! The email that tells the owner of a domain that its certificate ends soon because renewals fail.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use store::Conn;
use store::certificates::find_expiring;
use uuid::Uuid;

use crate::mail::Email;

pub(crate) async fn write(
    conn: &mut Conn,
    account_id: Uuid,
    domain_id: Uuid,
    now: DateTime<Utc>,
) -> anyhow::Result<Option<Email>> {
    let Some(expiring) = find_expiring(conn, account_id, domain_id, now).await? else { return Ok(None) };
    let (domain, end) = (&expiring.domain, expiring.not_after.format("%Y-%m-%d %H:%M UTC"));
    let mut text = format!(
        "The certificate of {domain} ends at {end}, and its renewal fails. It is served until then. Afterwards browsers \
         show a warning instead of your site.\n\n"
    );
    if let Some(error) = &expiring.error {
        let _infallible = writeln!(text, "What the last attempt met: {error}");
    }
    if let Some(next) = expiring.next_attempt_at {
        let _infallible = writeln!(text, "Next attempt: {}", next.format("%Y-%m-%d %H:%M UTC"));
    }
    let _infallible = write!(
        text,
        "\nWhat to do: GET /api/account/domains/{domain_id} lists the DNS records of the domain and which of them is \
         wrong. Once they are right, the renewal succeeds by itself.\n"
    );
    Ok(Some(Email {
        id: format!("{domain_id}.{}", expiring.not_after.timestamp()),
        to: Some(expiring.to),
        reply_to: None,
        subject: format!("The certificate of {domain} ends soon"),
        text,
        written_at: now.into(),
    }))
}
