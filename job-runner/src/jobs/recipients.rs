//! The question, mailed once, whether somebody wants to read of an account's submissions.
//!
//! It says nothing that the account has written: nobody can send words of their own to strangers by it.

use std::time::Duration;

use contract::Job;
use domain::recipients::LINK_PURPOSE;
use domain::retries;
use queue::Task;
use service::metrics;
use store::recipients::{self, Question};
use uuid::Uuid;

use crate::Runner;
use crate::mail::Letter;

/// What a lease is longer than an attempt may be: time to write the end down.
const LEASE_MARGIN: Duration = Duration::from_secs(15);

/// Queues up to `batch` questions that are due.
pub(crate) async fn order_due(runner: &Runner, batch: usize) -> anyhow::Result<()> {
    let room = i64::try_from(runner.queue.capacity_left().await?.min(batch))?;
    let mut conn = store::acquire(&runner.db).await?;
    let due = recipients::list_due(&mut conn, runner.clock.now(), room).await?;
    if due.is_empty() {
        return Ok(());
    }
    let task = |recipient_id| {
        let job = Job::AskRecipientV1 { recipient_id };
        Task { id: job.name(), job, traceparent: None }
    };
    runner.queue.push(due.into_iter().map(task).collect()).await?;
    Ok(())
}

pub(crate) async fn ask(runner: &Runner, recipient_id: Uuid) -> anyhow::Result<()> {
    // Other runners may have a server to mail through: it stays due for them.
    let Some(mailer) = &runner.mailer else { return Ok(()) };
    let now = runner.clock.now();
    let mut conn = store::acquire(&runner.db).await?;
    let leased = recipients::lease(&mut conn, recipient_id, now, now + mailer.timeout + LEASE_MARGIN).await?;
    drop(conn);
    let Some(question) = leased else { return Ok(()) };
    let attempt = question.attempt;
    let sent = match letter(runner, recipient_id, question) {
        Ok(letter) => mailer.send(letter).await,
        Err(error) => Err(error),
    };
    let result = if sent.is_ok() { "mailed" } else { "failed" };
    metrics::counter("job_runner_recipient_mail_total").add(1, &[("result", result)]);
    let due_at = sent.err().and_then(|error| {
        let next = usize::try_from(attempt).unwrap_or(usize::MAX);
        let pause = retries::pause_before(&mailer.schedule, next, runner.rng.fraction(), None);
        let error = format!("{error:#}");
        let is_last = pause.is_none();
        tracing::warn!(recipient.id = %recipient_id, attempt, error, is_last, "nobody could be asked");
        pause.map(|pause| runner.clock.now() + pause)
    });
    let mut conn = store::acquire(&runner.db).await?;
    recipients::finish(&mut conn, recipient_id, attempt, due_at).await?;
    Ok(())
}

/// The link by which somebody says yes or no.
///
/// # Errors
/// It was sealed under another master key.
pub(crate) fn link(runner: &Runner, sealed: &[u8]) -> anyhow::Result<String> {
    Ok(String::from_utf8(runner.master_key.open(LINK_PURPOSE, sealed)?)?)
}

fn letter(runner: &Runner, recipient_id: Uuid, question: Question) -> anyhow::Result<Letter> {
    let link = link(runner, &question.sealed_link)?;
    let text = format!(
        "Somebody wants the answers to their forms mailed to {}.\n\nTo agree, open this page:\n{link}\n\nIf you know \
         nothing of this, do nothing: you will get no other mail.\n",
        question.address
    );
    Ok(Letter {
        id: recipient_id.to_string(),
        to: Some(question.address),
        reply_to: None,
        subject: "Do you want to be mailed of answers to a form?".to_owned(),
        text,
        written_at: question.asked_at.into(),
    })
}
