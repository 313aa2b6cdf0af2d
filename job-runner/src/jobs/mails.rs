//! Mails on their way to whoever is told something, each kind in words of its own.
//!
//! An attempt is leased: killed before its end was written down, it is made again. The mail has the same `Message-ID` each
//! time, by which mailboxes know it again.

use std::time::Duration;

use contract::Job;
use domain::retries;
use queue::Task;
use service::metrics;
use store::Conn;
use store::mails::{self, Kind};
use uuid::Uuid;

use super::{help, notifications, recipients, webhooks};
use crate::Runner;
use crate::mail::{Letter, Mailer};

/// What a lease is longer than an attempt may be: time to write the end down.
const LEASE_MARGIN: Duration = Duration::from_secs(15);

/// Queues up to `batch` mails of each kind that are due.
pub(crate) async fn order_due(runner: &Runner, batch: usize) -> anyhow::Result<()> {
    let mut conn = store::acquire(&runner.db).await?;
    for kind in Kind::ALL {
        let room = i64::try_from(runner.queue.capacity_left().await?.min(batch))?;
        let due = mails::list_due(&mut conn, kind, runner.clock.now(), room).await?;
        if due.is_empty() {
            continue;
        }
        let task = |about| {
            let job = job(kind, about);
            Task { id: job.name(), job, traceparent: None }
        };
        runner.queue.push(due.into_iter().map(task).collect()).await?;
    }
    Ok(())
}

fn job(kind: Kind, about: Uuid) -> Job {
    match kind {
        Kind::Help => Job::MailHelpV1 { help_id: about },
        Kind::Question => Job::AskRecipientV1 { recipient_id: about },
        Kind::Submission => Job::NotifyOwnerV1 { submission_id: about },
        Kind::WebhookOff => Job::MailWebhookV1 { webhook_id: about },
    }
}

/// Makes an attempt to send a mail, if it is due.
pub(crate) async fn send(runner: &Runner, kind: Kind, about: Uuid) -> anyhow::Result<()> {
    // Other runners may have a server to mail through: it stays due for them.
    let Some(mailer) = &runner.mailer else { return Ok(()) };
    let now = runner.clock.now();
    let mut conn = store::acquire(&runner.db).await?;
    let leased = mails::lease(&mut conn, kind, about, now, now + mailer.timeout + LEASE_MARGIN).await?;
    let Some(leased) = leased else { return Ok(()) };
    let letter = write(runner, mailer, &mut conn, (kind, about), leased.account_id).await;
    drop(conn);
    let sent = match letter {
        Ok(Some(letter)) => mailer.send(letter).await.map(|()| "mailed"),
        // Nobody wants it any more.
        Ok(None) => Ok("unwanted"),
        Err(error) => Err(error),
    };
    let result = *sent.as_ref().unwrap_or(&"failed");
    metrics::counter("job_runner_mail_total").add(1, &[("kind", kind.word()), ("result", result)]);
    let due_at = sent.err().and_then(|error| {
        let next = usize::try_from(leased.attempt).unwrap_or(usize::MAX);
        let pause = retries::pause_before(&mailer.schedule, next, runner.rng.fraction(), None);
        let (kind, error) = (kind.word(), format!("{error:#}"));
        match pause {
            Some(_) => tracing::warn!(kind, mail.about = %about, leased.attempt, error, "a mail waits"),
            None => tracing::error!(kind, mail.about = %about, leased.attempt, error, "a mail is given up"),
        }
        pause.map(|pause| runner.clock.now() + pause)
    });
    let mut conn = store::acquire(&runner.db).await?;
    mails::finish(&mut conn, kind, about, leased.attempt, due_at).await?;
    Ok(())
}

/// What is to be read; nothing if nobody is to be told any more.
async fn write(
    runner: &Runner,
    mailer: &Mailer,
    conn: &mut Conn,
    (kind, about): (Kind, Uuid),
    account_id: Uuid,
) -> anyhow::Result<Option<Letter>> {
    match kind {
        Kind::Help => help::write(conn, account_id, about).await,
        Kind::Question => recipients::write(runner, conn, account_id, about).await,
        Kind::Submission => notifications::write(runner, mailer, conn, account_id, about).await,
        Kind::WebhookOff => webhooks::mails::write(conn, account_id, about).await,
    }
}
