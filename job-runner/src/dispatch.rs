//! Who does which job: one exhaustive match, so that a job nobody does can't be written.

use contract::Job;
use queue::Task;
use service::Shutdown;
use store::mails::Kind;
use tracing::Instrument;

use crate::Runner;
use crate::jobs::{mails, purges};

pub(crate) async fn run(runner: Runner, shutdown: Shutdown) -> anyhow::Result<()> {
    let queue = runner.queue.clone();
    let handler = move |task: Task<Job>| {
        let runner = runner.clone();
        async move { carry_out(&runner, task).await }
    };
    queue.run_worker(handler, shutdown.requested()).await;
    Ok(())
}

async fn carry_out(runner: &Runner, task: Task<Job>) {
    let span = tracing::info_span!("job", job.id = task.id);
    service::telemetry::continue_from(&span, task.traceparent.as_deref());
    let done = async {
        match task.job {
            Job::MailHelpV1 { help_id } => mails::send(runner, Kind::Help, help_id).await,
            Job::MailWebhookV1 { webhook_id } => mails::send(runner, Kind::WebhookOff, webhook_id).await,
            Job::NotifyOwnerV1 { submission_id } => {
                mails::send(runner, Kind::Submission, submission_id).await
            }
            Job::AskRecipientV1 { recipient_id } => mails::send(runner, Kind::Question, recipient_id).await,
            Job::PurgeEventsV1 => purges::forget_events(runner).await,
        }
    };
    if let Err(error) = done.instrument(span.clone()).await {
        // What is to be done still stands in Postgres; the sweep comes back to it.
        tracing::warn!(parent: &span, error = format!("{error:#}"), "a job could not be done now");
    }
}
