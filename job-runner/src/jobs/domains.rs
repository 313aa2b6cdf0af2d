//! The email that tells an owner that the DNS records of a custom domain are gone.

use domain::domains::SERVED_FOR;
use store::Conn;
use store::domains::find_records_gone;
use uuid::Uuid;

use crate::mail::Email;

pub(crate) async fn write(conn: &mut Conn, account_id: Uuid, id: Uuid) -> anyhow::Result<Option<Email>> {
    let Some(gone) = find_records_gone(conn, account_id, id).await? else { return Ok(None) };
    let domain = &gone.domain;
    let consequence = match gone.verified_at {
        Some(at) => {
            let end = (at + SERVED_FOR).format("%Y-%m-%d %H:%M UTC");
            format!("The domain is served until {end}, and longer if the records stand again by then.")
        }
        None => "Another account has proved that the domain is its own, so it is no longer served for you."
            .to_owned(),
    };
    let error = gone.error.unwrap_or_default();
    let text = format!(
        "The DNS records of your custom domain {domain} are gone.\n\n{error}\n\n{consequence}\n\n\
         Its records and their states: GET /api/account/domains/{id}\n"
    );
    Ok(Some(Email {
        id: format!("{id}.{}", gone.noticed_at.timestamp()),
        to: Some(gone.to),
        reply_to: None,
        subject: format!("The DNS records of {domain} are gone"),
        text,
        written_at: gone.noticed_at.into(),
    }))
}
