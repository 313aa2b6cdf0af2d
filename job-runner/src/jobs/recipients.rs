//! The question, mailed once, whether somebody wants to read of an account's submissions.
//!
//! It says nothing that the account has written: nobody can send words of their own to strangers by it.

use domain::recipients::LINK_PURPOSE;
use store::Conn;
use store::recipients::find_question;
use uuid::Uuid;

use crate::Runner;
use crate::mail::Letter;

/// The link by which somebody says yes or no.
///
/// # Errors
/// It was sealed under another master key.
pub(crate) fn link(runner: &Runner, sealed: &[u8]) -> anyhow::Result<String> {
    Ok(String::from_utf8(runner.master_key.open(LINK_PURPOSE, sealed)?)?)
}

pub(crate) async fn write(
    runner: &Runner,
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
) -> anyhow::Result<Option<Letter>> {
    let Some(question) = find_question(conn, account_id, id).await? else { return Ok(None) };
    let link = link(runner, &question.sealed_link)?;
    let text = format!(
        "Somebody wants the answers to their forms mailed to {}.\n\nTo agree, open this page:\n{link}\n\nIf you know \
         nothing of this, do nothing: you will get no other mail.\n",
        question.address
    );
    Ok(Some(Letter {
        id: id.to_string(),
        to: Some(question.address),
        reply_to: None,
        subject: "Do you want to be mailed of answers to a form?".to_owned(),
        text,
        written_at: question.asked_at.into(),
    }))
}
