//! One trace covers a submission and its webhook attempt, across two processes, a database and a queue.

use anyhow::Result;
use harness::{System, TraceSink, until};

use crate::PROGRAM;
use crate::story::Story;

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_and_its_webhook_attempt_are_one_trace() -> Result<()> {
    let sink = TraceSink::listen().await?;
    let endpoint = format!("telemetry.otlp_endpoint={}", sink.endpoint);
    let system = System::start(PROGRAM, true, &[&endpoint]).await?;
    let mut story = Story::begin(&system).await?;
    story.a_trial_gives_a_working_key().await?;
    story.a_form_validates_submissions().await?;
    story.a_webhook_is_created().await?;
    let submission = story.a_submission_is_accepted().await?;
    story.it_is_stored_and_delivered(&submission).await?;

    let (attempt, submit) = until("the attempt and its submit to be exported", async || {
        let spans = sink.spans();
        let attempt = spans.iter().find(|span| span.name == "webhook attempt")?.clone();
        let same = |span: &&harness::Span| span.trace_id == attempt.trace_id && span.name == "request";
        let submit = spans.iter().find(same)?.clone();
        Some((attempt, submit))
    })
    .await?;
    assert!(attempt.service.contains("job-runner"), "{}", attempt.service);
    assert!(submit.service.contains("edge-server"), "{}", submit.service);
    Ok(())
}
