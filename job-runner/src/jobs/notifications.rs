//! A mail to a form's owner: somebody has answered.
//!
//! As with requests for help, an attempt is leased, and the mail has the same `Message-ID` each time. An answer to the
//! mail goes to whoever submitted the form, if they gave an address.

use std::fmt::Write as _;
use std::time::Duration;

use contract::Job;
use domain::answers::is_email;
use domain::fields::FieldType;
use domain::retries;
use queue::Task;
use serde_json::Value;
use service::metrics;
use store::notifications::{self, Notification};
use uuid::Uuid;

use super::recipients;
use crate::Runner;
use crate::mail::Letter;

/// What a lease is longer than an attempt may be: time to write the end down.
const LEASE_MARGIN: Duration = Duration::from_secs(15);
/// Most characters of one answer in a mail.
const ANSWER_CHARS: usize = 5_000;

/// Queues up to `batch` mails that are due.
pub(crate) async fn order_due(runner: &Runner, batch: usize) -> anyhow::Result<()> {
    let room = i64::try_from(runner.queue.capacity_left().await?.min(batch))?;
    let mut conn = store::acquire(&runner.db).await?;
    let due = notifications::list_due(&mut conn, runner.clock.now(), room).await?;
    if due.is_empty() {
        return Ok(());
    }
    let task = |submission_id| {
        let job = Job::NotifyOwnerV1 { submission_id };
        Task { id: job.name(), job, traceparent: None }
    };
    runner.queue.push(due.into_iter().map(task).collect()).await?;
    Ok(())
}

pub(crate) async fn notify(runner: &Runner, submission_id: Uuid) -> anyhow::Result<()> {
    // Other runners may have a server to mail through: it stays due for them.
    let Some(mailer) = &runner.mailer else { return Ok(()) };
    let now = runner.clock.now();
    let mut conn = store::acquire(&runner.db).await?;
    let again_at = now + mailer.timeout + LEASE_MARGIN;
    let leased = notifications::lease(&mut conn, submission_id, now, again_at).await?;
    drop(conn);
    let Some(notification) = leased else { return Ok(()) };
    let attempt = notification.attempt;
    let sent = match &notification.to {
        Some(to) => match letter(runner, submission_id, to, &notification) {
            Ok(letter) => mailer.send(letter).await,
            Err(error) => Err(error),
        },
        // Nobody wants it any more.
        None => Ok(()),
    };
    let result = if sent.is_ok() { "mailed" } else { "failed" };
    metrics::counter("job_runner_notification_mail_total").add(1, &[("result", result)]);
    let due_at = sent.err().and_then(|error| {
        let next = usize::try_from(attempt).unwrap_or(usize::MAX);
        let pause = retries::pause_before(&mailer.schedule, next, runner.rng.fraction(), None);
        let error = format!("{error:#}");
        let is_last = pause.is_none();
        tracing::warn!(submission.id = %submission_id, attempt, error, is_last, "an owner could not be mailed");
        pause.map(|pause| runner.clock.now() + pause)
    });
    let mut conn = store::acquire(&runner.db).await?;
    notifications::finish(&mut conn, submission_id, attempt, due_at).await?;
    Ok(())
}

/// What the owner reads: each question with its answer, in the form's order.
fn letter(
    runner: &Runner,
    submission_id: Uuid,
    to: &str,
    notification: &Notification,
) -> anyhow::Result<Letter> {
    let mut text = String::new();
    let mut reply_to = None;
    for field in &notification.fields {
        let Some(answer) = notification.payload.get(&field.name).map(written) else { continue };
        if field.kind == FieldType::Email && reply_to.is_none() && is_email(&answer) {
            reply_to = Some(answer.clone());
        }
        let answer: String = answer.chars().take(ANSWER_CHARS).collect();
        let _infallible = write!(text, "{}\n{answer}\n\n", field.label);
    }
    let _infallible = write!(
        text,
        "--\nSubmitted: {}\nSubmission: {submission_id}\n",
        notification.submitted_at.format("%Y-%m-%d %H:%M UTC")
    );
    if let Some(sealed) = &notification.sealed_link {
        let _infallible = writeln!(text, "No more of these mails: {}", recipients::link(runner, sealed)?);
    }
    Ok(Letter {
        id: submission_id.to_string(),
        to: Some(to.to_owned()),
        reply_to,
        subject: format!("New submission: {}", notification.form_name),
        text,
        written_at: notification.submitted_at.into(),
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
