//! The email that notifies a form's owner of a submission. Their number per form and hour is limited, so that submitters
//! can't flood a mailbox; the last one within the limit says where further submissions are listed.
//!
//! A reply goes to the submitter if the submission contains an email address.

use std::fmt::Write as _;

use chrono::{DateTime, TimeDelta, Utc};
use domain::answers::is_email;
use domain::fields::FieldType;
use serde_json::Value;
use store::Conn;
use store::notifications::{self, MailQuota, Notification, QuotaPosition};
use uuid::Uuid;

use super::recipients;
use crate::mail::{Email, Mailer};
use crate::state::JobState;

/// Maximum length of one answer in an email.
const MAX_ANSWER_CHARS: usize = 5_000;
/// The window in which a form's emails are counted. A retried email counts at its first attempt.
const LIMIT_WINDOW: TimeDelta = TimeDelta::hours(1);

pub(crate) async fn write(
    state: &JobState,
    mailer: &Mailer,
    conn: &mut Conn,
    account_id: Uuid,
    submission_id: Uuid,
) -> anyhow::Result<Option<Email>> {
    let notification = notifications::find_notification(conn, account_id, submission_id).await?;
    let Some(notification) = notification else { return Ok(None) };
    let now = state.clock.now();
    let allowance = MailQuota { mails: mailer.max_per_form_and_hour.into(), since: now - LIMIT_WINDOW, now };
    let place =
        notifications::reserve_mail(conn, account_id, notification.form_id, submission_id, &allowance)
            .await?;
    let paused_until = match place {
        QuotaPosition::Within => None,
        QuotaPosition::Last(since) => Some(since + LIMIT_WINDOW),
        QuotaPosition::Exceeded => return Ok(None),
    };
    email(state, submission_id, notification, paused_until).map(Some)
}

/// Writes each field's label and answer, in the form's order.
fn email(
    state: &JobState,
    submission_id: Uuid,
    notification: Notification,
    paused_until: Option<DateTime<Utc>>,
) -> anyhow::Result<Email> {
    let mut text = String::new();
    let mut reply_to = None;
    for field in &notification.fields {
        let Some(answer) = notification.payload.get(&field.name).map(format_answer) else { continue };
        if field.kind == FieldType::Email && reply_to.is_none() && is_email(&answer) {
            reply_to = Some(answer.clone());
        }
        let answer: String = answer.chars().take(MAX_ANSWER_CHARS).collect();
        let _infallible = write!(text, "{}\n{answer}\n\n", field.label);
    }
    let time = |at: DateTime<Utc>| at.format("%Y-%m-%d %H:%M UTC");
    let _infallible =
        write!(text, "--\nSubmitted: {}\nSubmission: {submission_id}\n", time(notification.submitted_at));
    if let Some(paused_until) = paused_until {
        let _infallible = writeln!(
            text,
            "This form receives many submissions: those before {} are not emailed. All submissions are listed at \
             GET /api/forms/{}/submissions",
            time(paused_until),
            notification.form_id
        );
    }
    if let Some(sealed) = &notification.sealed_link {
        let _infallible = writeln!(text, "Unsubscribe: {}", recipients::link(state, sealed)?);
    }
    Ok(Email {
        id: submission_id.to_string(),
        to: Some(notification.to),
        reply_to,
        subject: format!("New submission: {}", notification.form_name),
        text,
        written_at: notification.submitted_at.into(),
    })
}

fn format_answer(answer: &Value) -> String {
    match answer {
        Value::String(text) => text.clone(),
        Value::Bool(is_checked) => if *is_checked { "yes" } else { "no" }.to_owned(),
        Value::Array(chosen) => chosen.iter().map(format_answer).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}
