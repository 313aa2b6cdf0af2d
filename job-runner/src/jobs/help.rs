//! A request for help on its way to the operator.
//!
//! An attempt is leased: killed before its end was written down, it is made again. The mail has the same
//! `Message-ID` each time, by which mailboxes know it again.

use std::time::Duration;

use contract::Job;
use domain::retries;
use queue::Task;
use service::metrics;
use store::help::{self, Help};
use uuid::Uuid;

use crate::Runner;
use crate::mail::Letter;

/// What a lease is longer than an attempt may be: time to write the end down.
const LEASE_MARGIN: Duration = Duration::from_secs(15);

/// Queues up to `batch` requests whose mail is due.
pub(crate) async fn order_due(runner: &Runner, batch: usize) -> anyhow::Result<()> {
    let room = i64::try_from(runner.queue.capacity_left().await?.min(batch))?;
    let mut conn = store::acquire(&runner.db).await?;
    let due = help::list_due(&mut conn, runner.clock.now(), room).await?;
    if due.is_empty() {
        return Ok(());
    }
    let task = |help_id| {
        let job = Job::MailHelpV1 { help_id };
        Task { id: job.name(), job, traceparent: None }
    };
    runner.queue.push(due.into_iter().map(task).collect()).await?;
    Ok(())
}

pub(crate) async fn mail(runner: &Runner, help_id: Uuid) -> anyhow::Result<()> {
    // Other runners may have a server to mail through: the request stays due for them.
    let Some(mailer) = &runner.mailer else { return Ok(()) };
    let now = runner.clock.now();
    let mut conn = store::acquire(&runner.db).await?;
    let leased = help::lease_mail(&mut conn, help_id, now, now + mailer.timeout + LEASE_MARGIN).await?;
    drop(conn);
    let Some(request) = leased else { return Ok(()) };
    let sent = mailer.send(letter(help_id, &request)).await;
    let result = if sent.is_ok() { "mailed" } else { "failed" };
    metrics::counter("job_runner_help_mail_total").add(1, &[("result", result)]);

    let next = usize::try_from(request.attempt).unwrap_or(usize::MAX);
    let pause = retries::pause_before(&mailer.schedule, next, runner.rng.fraction(), None);
    let attempt = request.attempt;
    let due_at = match sent {
        Ok(()) => {
            tracing::info!(help.id = %help_id, attempt, "a request for help is mailed");
            None
        }
        Err(error) => {
            let error = format!("{error:#}");
            match pause {
                Some(_) => tracing::warn!(help.id = %help_id, attempt, error, "a request for help waits"),
                None => tracing::error!(help.id = %help_id, attempt, error, "a request for help is given up"),
            }
            pause.map(|pause| runner.clock.now() + pause)
        }
    };
    let mut conn = store::acquire(&runner.db).await?;
    help::finish_mail(&mut conn, help_id, attempt, due_at).await?;
    Ok(())
}

/// What the operator reads.
fn letter(id: Uuid, request: &Help) -> Letter {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let text = format!(
        "Category: {}\nSeverity: {}\nAccount:  {}\nPage:     {}\nAnswer:   {}\nRequest:  {id}\n\n{}\n",
        request.category,
        or_none(&request.severity),
        request.account_id,
        or_none(&request.url),
        or_none(&request.email),
        request.message,
    );
    Letter {
        id: id.to_string(),
        to: None,
        reply_to: request.email.clone(),
        subject: format!("[{}] {}", request.category, request.subject),
        text,
        written_at: request.created_at.into(),
    }
}
