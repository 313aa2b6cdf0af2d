//! A mail to an owner: a webhook of theirs was switched off, because nobody is there or nothing was delivered for days.
//!
//! It says nothing of the address, which may be a secret. As with other mails, an attempt is leased, and each attempt has
//! the same `Message-ID`, by which mailboxes know it again.

use std::fmt::Write as _;
use std::time::Duration;

use contract::Job;
use domain::retries;
use domain::webhooks::health::Reason;
use queue::Task;
use service::metrics;
use store::webhooks::{self, WebhookMail};
use uuid::Uuid;

use crate::Runner;
use crate::mail::Letter;

/// What a lease is longer than an attempt may be: time to write the end down.
const LEASE_MARGIN: Duration = Duration::from_secs(15);

/// Queues up to `batch` mails that are due.
pub(crate) async fn order_due(runner: &Runner, batch: usize) -> anyhow::Result<()> {
    let room = i64::try_from(runner.queue.capacity_left().await?.min(batch))?;
    let mut conn = store::acquire(&runner.db).await?;
    let due = webhooks::list_due_mails(&mut conn, runner.clock.now(), room).await?;
    if due.is_empty() {
        return Ok(());
    }
    let task = |webhook_id| {
        let job = Job::MailWebhookV1 { webhook_id };
        Task { id: job.name(), job, traceparent: None }
    };
    runner.queue.push(due.into_iter().map(task).collect()).await?;
    Ok(())
}

pub(crate) async fn mail(runner: &Runner, webhook_id: Uuid) -> anyhow::Result<()> {
    // Other runners may have a server to mail through: it stays due for them.
    let Some(mailer) = &runner.mailer else { return Ok(()) };
    let now = runner.clock.now();
    let mut conn = store::acquire(&runner.db).await?;
    let leased =
        webhooks::lease_mail(&mut conn, webhook_id, now, now + mailer.timeout + LEASE_MARGIN).await?;
    drop(conn);
    let Some(mail) = leased else { return Ok(()) };
    let sent = match &mail.to {
        Some(to) => mailer.send(letter(webhook_id, to, &mail)).await,
        None => Ok(()),
    };
    let result = if sent.is_ok() { "mailed" } else { "failed" };
    metrics::counter("job_runner_webhook_mail_total").add(1, &[("result", result)]);
    let due_at = sent.err().and_then(|error| {
        let next = usize::try_from(mail.attempt).unwrap_or(usize::MAX);
        let pause = retries::pause_before(&mailer.schedule, next, runner.rng.fraction(), None);
        let (error, is_last) = (format!("{error:#}"), pause.is_none());
        tracing::warn!(webhook.id = %webhook_id, mail.attempt, error, is_last, "an owner could not be mailed");
        pause.map(|pause| runner.clock.now() + pause)
    });
    let mut conn = store::acquire(&runner.db).await?;
    webhooks::finish_mail(&mut conn, webhook_id, mail.attempt, due_at).await?;
    Ok(())
}

/// What the owner reads.
fn letter(webhook_id: Uuid, to: &str, mail: &WebhookMail) -> Letter {
    let when = mail.deactivated_at.format("%Y-%m-%d %H:%M UTC");
    let mut text =
        format!("A webhook of yours was switched off at {when}. Nothing is delivered to it any more.\n\n");
    if mail.reason == Reason::Gone.word() {
        text.push_str("Why: its address answered that there is nobody any more.\n");
    } else {
        text.push_str("Why: nothing could be delivered to it for days");
        if let Some(since) = mail.failing_since {
            let _infallible = write!(text, ", since {}", since.format("%Y-%m-%d %H:%M UTC"));
        }
        text.push_str(".\n");
    }
    let _infallible = writeln!(text, "Webhook: {webhook_id}");
    if let Some(description) = &mail.description {
        let _infallible = writeln!(text, "Your note: {description}");
    }
    let _infallible = write!(
        text,
        "\nWhen it works again, switch it on: PATCH /api/webhooks/{webhook_id} with {{\"isActive\": true}}. What came to \
         nothing can then be sent again: POST /api/webhooks/{webhook_id}/retry with {{\"since\": \"<time>\"}}.\n"
    );
    Letter {
        id: format!("{webhook_id}.{}", mail.deactivated_at.timestamp()),
        to: Some(to.to_owned()),
        reply_to: None,
        subject: "A webhook of yours was switched off".to_owned(),
        text,
        written_at: mail.deactivated_at.into(),
    }
}
