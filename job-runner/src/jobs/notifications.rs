//! A mail to a form's owner: somebody has answered. So many an hour, as those who answer it must not be able to fill a
//! mailbox; the last of them says where the others are.
//!
//! An answer to the mail goes to whoever submitted the form, if they gave an address.

use std::fmt::Write as _;

use chrono::{DateTime, TimeDelta, Utc};
use domain::answers::is_email;
use domain::fields::FieldType;
use serde_json::Value;
use store::Conn;
use store::notifications::{self, Allowance, Notification, Place};
use uuid::Uuid;

use super::recipients;
use crate::Runner;
use crate::mail::{Letter, Mailer};

/// Most characters of one answer in a mail.
const ANSWER_CHARS: usize = 5_000;
/// How long a form's mails are counted before that is begun anew. A mail that was put off is counted when it was first tried.
const COUNTED_FOR: TimeDelta = TimeDelta::hours(1);

pub(crate) async fn write(
    runner: &Runner,
    mailer: &Mailer,
    conn: &mut Conn,
    account_id: Uuid,
    submission_id: Uuid,
) -> anyhow::Result<Option<Letter>> {
    let told = notifications::find_notification(conn, account_id, submission_id).await?;
    let Some(told) = told else { return Ok(None) };
    let now = runner.clock.now();
    let allowance = Allowance { mails: mailer.per_form_and_hour.into(), since: now - COUNTED_FOR, now };
    let place = notifications::take_place(conn, account_id, told.form_id, submission_id, &allowance).await?;
    let more_from = match place {
        Place::OneOfMany => None,
        Place::Last(since) => Some(since + COUNTED_FOR),
        Place::OneTooMany => return Ok(None),
    };
    letter(runner, submission_id, told, more_from).map(Some)
}

/// What the owner reads: each question with its answer, in the form's order.
fn letter(
    runner: &Runner,
    submission_id: Uuid,
    told: Notification,
    more_from: Option<DateTime<Utc>>,
) -> anyhow::Result<Letter> {
    let mut text = String::new();
    let mut reply_to = None;
    for field in &told.fields {
        let Some(answer) = told.payload.get(&field.name).map(written) else { continue };
        if field.kind == FieldType::Email && reply_to.is_none() && is_email(&answer) {
            reply_to = Some(answer.clone());
        }
        let answer: String = answer.chars().take(ANSWER_CHARS).collect();
        let _infallible = write!(text, "{}\n{answer}\n\n", field.label);
    }
    let time = |at: DateTime<Utc>| at.format("%Y-%m-%d %H:%M UTC");
    let _infallible =
        write!(text, "--\nSubmitted: {}\nSubmission: {submission_id}\n", time(told.submitted_at));
    if let Some(more_from) = more_from {
        let _infallible = writeln!(
            text,
            "This form is answered very often: of what comes before {} you are not mailed. You find it where all \
             submissions are: GET /api/forms/{}/submissions",
            time(more_from),
            told.form_id
        );
    }
    if let Some(sealed) = &told.sealed_link {
        let _infallible = writeln!(text, "No more of these mails: {}", recipients::link(runner, sealed)?);
    }
    Ok(Letter {
        id: submission_id.to_string(),
        to: Some(told.to),
        reply_to,
        subject: format!("New submission: {}", told.form_name),
        text,
        written_at: told.submitted_at.into(),
    })
}

fn written(answer: &Value) -> String {
    match answer {
        Value::String(text) => text.clone(),
        Value::Bool(is_ticked) => if *is_ticked { "yes" } else { "no" }.to_owned(),
        Value::Array(chosen) => chosen.iter().map(written).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}
