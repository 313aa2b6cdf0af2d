//! Sends due emails. The table `mails` holds what is due; each kind has a file that writes its text.
//!
//! An attempt is leased: after a kill before its result was stored, it is repeated. All attempts of an email have the same
//! `Message-ID`, by which mailboxes recognize duplicates.

use std::time::Duration;

use contract::Job;
use domain::retries;
use queue::Task;
use store::Conn;
use store::mails::{self, Kind, MailResult};
use uuid::Uuid;

use super::{automations, certificates, domains, help, notifications, recipients, webhooks};
use crate::mail::{Email, Mailer};
use crate::metrics;
use crate::state::JobState;

/// Time that a lease has beyond the timeout of an attempt, to store the result.
const LEASE_MARGIN: Duration = Duration::from_secs(15);

/// Queues up to `batch_size` due emails of each kind.
pub(crate) async fn enqueue_due(state: &JobState, batch_size: usize) -> anyhow::Result<()> {
    let mut conn = store::acquire(&state.db).await?;
    for kind in Kind::ALL {
        let max = i64::try_from(state.queue.capacity_left().await?.min(batch_size))?;
        let due = mails::list_due(&mut conn, kind, state.clock.now(), max).await?;
        if due.is_empty() {
            continue;
        }
        let task = |about| {
            let job = job(kind, about);
            Task { id: job.name(), job, traceparent: None }
        };
        state.queue.push(due.into_iter().map(task).collect()).await?;
    }
    Ok(())
}

fn job(kind: Kind, about: Uuid) -> Job {
    match kind {
        Kind::Help => Job::MailHelpV1 { help_id: about },
        Kind::Confirmation => Job::AskRecipientV1 { recipient_id: about },
        Kind::Submission => Job::NotifyOwnerV1 { submission_id: about },
        Kind::WebhookOff => Job::MailWebhookV1 { webhook_id: about },
        Kind::DomainRecords => Job::MailDomainV1 { domain_id: about },
        Kind::CertificateExpiring => Job::MailCertificateV1 { domain_id: about },
        Kind::AutomationFailed => Job::MailAutomationV1 { automation_id: about },
    }
}

/// Makes an attempt to send an email if it is due.
pub(crate) async fn send(state: &JobState, kind: Kind, about: Uuid) -> anyhow::Result<()> {
    // Without a server here, the email stays due for job-runners that have one.
    let Some(mailer) = &state.mailer else { return Ok(()) };
    let now = state.clock.now();
    let mut conn = store::acquire(&state.db).await?;
    let leased = mails::lease(&mut conn, kind, about, now, now + mailer.timeout + LEASE_MARGIN).await?;
    let Some(leased) = leased else { return Ok(()) };
    let email = write(state, mailer, &mut conn, (kind, about), leased.account_id).await;
    drop(conn);
    let sent = match email {
        Ok(Some(email)) => mailer.send(email).await.map(|()| MailResult::Sent),
        Ok(None) => Ok(MailResult::Skipped),
        Err(error) => Err(error),
    };
    let result = *sent.as_ref().unwrap_or(&MailResult::Failed);
    metrics::MAILS_SENT.add(1, &[("kind", kind.as_str()), ("result", label(result))]);
    let due_at = sent.err().and_then(|error| {
        let next = usize::try_from(leased.attempt).unwrap_or(usize::MAX);
        let pause = retries::delay_before(&mailer.retry_schedule, next, state.rng.fraction(), None);
        let (kind, error) = (kind.as_str(), format!("{error:#}"));
        match pause {
            Some(_) => tracing::warn!(kind, mail.about = %about, leased.attempt, error, "sending an email failed and is retried"),
            None => tracing::error!(kind, mail.about = %about, leased.attempt, error, "sending an email failed finally"),
        }
        pause.map(|pause| state.clock.now() + pause)
    });
    let mut conn = store::acquire(&state.db).await?;
    match due_at {
        Some(due_at) => mails::delay(&mut conn, kind, about, leased.attempt, due_at).await?,
        None => mails::finish(&mut conn, kind, about, leased.attempt, result, state.clock.now()).await?,
    }
    Ok(())
}

/// The label of a result in the metrics.
fn label(result: MailResult) -> &'static str {
    match result {
        MailResult::Sent => "mailed",
        MailResult::Skipped => "unwanted",
        MailResult::Failed => "failed",
    }
}

/// Returns the email, or `None` if there is no recipient any more.
async fn write(
    state: &JobState,
    mailer: &Mailer,
    conn: &mut Conn,
    (kind, about): (Kind, Uuid),
    account_id: Uuid,
) -> anyhow::Result<Option<Email>> {
    match kind {
        Kind::Help => help::write(conn, account_id, about).await,
        Kind::Confirmation => recipients::write(state, conn, account_id, about).await,
        Kind::Submission => notifications::write(state, mailer, conn, account_id, about).await,
        Kind::WebhookOff => webhooks::mails::write(conn, account_id, about).await,
        Kind::DomainRecords => domains::write(conn, account_id, about).await,
        Kind::CertificateExpiring => certificates::write(conn, account_id, about, state.clock.now()).await,
        Kind::AutomationFailed => automations::write(conn, account_id, about).await,
    }
}
