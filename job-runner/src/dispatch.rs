//! Runs queued jobs. One exhaustive match assigns each job type its handler, so a job without a handler does not compile.

use std::time::Instant;

use contract::Job;
use queue::Task;
use service::Shutdown;
use store::mails::Kind;
use tracing::Instrument;

use crate::jobs::{mails, purges};
use crate::metrics;
use crate::state::JobState;
use crate::unreadable;

pub(crate) async fn run(state: JobState, shutdown: Shutdown) -> anyhow::Result<()> {
    let (returning, stop) = (state.clone(), shutdown.clone());
    let queue = state
        .queue
        .clone()
        .on_unreadable(move |task| unreadable::return_to_outbox(returning.clone(), task, stop.clone()));
    let handler = move |task: Task<Job>| {
        let state = state.clone();
        async move { run_job(&state, task).await }
    };
    queue.run_worker(handler, shutdown.requested()).await;
    Ok(())
}

async fn run_job(state: &JobState, task: Task<Job>) {
    let span = tracing::info_span!("job", job.id = task.id);
    service::telemetry::continue_from(&span, task.traceparent.as_deref());
    let (kind, began) = (task.job.kind(), Instant::now());
    let work = async {
        match task.job {
            Job::MailHelpV1 { help_id } => mails::send(state, Kind::Help, help_id).await,
            Job::MailWebhookV1 { webhook_id } => mails::send(state, Kind::WebhookOff, webhook_id).await,
            Job::NotifyOwnerV1 { submission_id } => mails::send(state, Kind::Submission, submission_id).await,
            Job::AskRecipientV1 { recipient_id } => {
                mails::send(state, Kind::Confirmation, recipient_id).await
            }
            Job::MailDomainV1 { domain_id } => mails::send(state, Kind::DomainRecords, domain_id).await,
            Job::MailCertificateV1 { domain_id } => {
                mails::send(state, Kind::CertificateExpiring, domain_id).await
            }
            Job::MailAutomationV1 { automation_id } => {
                mails::send(state, Kind::AutomationFailed, automation_id).await
            }
            Job::PurgeEventsV1 => purges::delete_events(state).await,
        }
    };
    let result = work.instrument(span.clone()).await;
    let outcome = if result.is_ok() { "ok" } else { "error" };
    metrics::JOB_SECONDS.record(began.elapsed(), &[("kind", kind), ("result", outcome)]);
    if let Err(error) = result {
        // The work remains due in Postgres, and a sweep finds it again.
        tracing::warn!(parent: &span, error = format!("{error:#}"), "a job failed and is retried by the next sweep");
    }
}
