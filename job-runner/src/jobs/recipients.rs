//! The email that asks a recipient once whether they agree to receive an account's submissions.
//!
//! It contains no text of the account, so an account can't send its own words to strangers.

use domain::recipients::LINK_PURPOSE;
use store::Conn;
use store::recipients::find_confirmation;
use uuid::Uuid;

use crate::mail::Email;
use crate::state::JobState;

/// Decrypts the link by which the recipient agrees or refuses. Fails if it was encrypted under another master key.
pub(crate) fn link(state: &JobState, sealed: &[u8]) -> anyhow::Result<String> {
    Ok(String::from_utf8(state.master_key.open(LINK_PURPOSE, sealed)?)?)
}

pub(crate) async fn write(
    state: &JobState,
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
) -> anyhow::Result<Option<Email>> {
    let Some(question) = find_confirmation(conn, account_id, id).await? else { return Ok(None) };
    let link = link(state, &question.sealed_link)?;
    let text = format!(
        "The owner of a form wants its submissions emailed to {}.\n\nTo agree, open this page:\n{link}\n\nIf you do not \
         know about this, do nothing: you will get no other email.\n",
        question.address
    );
    Ok(Some(Email {
        id: id.to_string(),
        to: Some(question.address),
        reply_to: None,
        subject: "Do you agree to receive the submissions of a form?".to_owned(),
        text,
        written_at: question.asked_at.into(),
    }))
}
