//! One trace covers a submission, its webhook attempt, and the run of an automation with its steps: over two processes, the
//! outbox and the queue. It reaches the sink through an OTLP receiver that others made.

use anyhow::{Context, Result, bail, ensure};
use harness::{Answer, OtlpReceiver, Packages, Peer, Span, System, TraceSink, until};
use serde_json::json;

use crate::PROGRAM;
use crate::automations::{Automation, Owner};

/// The receiver.
const PACKAGES: Packages =
    Packages::new(concat!(env!("CARGO_MANIFEST_DIR"), "/e2e"), env!("CARGO_TARGET_TMPDIR"));

/// Set where the receiver can be had, as in `.ci/run`: then the test fails without it.
const REQUIRED: &str = "TESTS_REQUIRE_OTLP_RECEIVER";

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_its_webhook_attempt_and_its_automation_are_one_trace() -> Result<()> {
    let sink = TraceSink::listen().await?;
    let between = match OtlpReceiver::start(&PACKAGES, &sink).await {
        Ok(receiver) => Some(receiver),
        Err(reason) if std::env::var_os(REQUIRED).is_none() => {
            eprintln!("NOT TESTED: a third-party OTLP receiver. {reason:#}");
            None
        }
        Err(reason) => bail!("{REQUIRED} is set, but Rotel can't be had: {reason:#}"),
    };
    let endpoint = between.as_ref().map_or(&sink.endpoint, |receiver| &receiver.endpoint);
    let system = System::start(PROGRAM, true, &[&format!("telemetry.otlp_endpoint={endpoint}")]).await?;
    let owner = Owner::new(&system).await?;
    let peer = Peer::listen().await?;
    peer.answer("/leads", |_, _| Answer::new(201, json!({"id": "lead_1"})));
    // A receiver that is gone: its webhook is deactivated, and the job-runner logs that.
    peer.answer("/hook", |_, _| Answer::new(410, "gone"));
    let form = owner.form("Leads", &[("email", "email")]).await?;
    let page = owner.page("leads", "<li>{{email}}</li>").await?;
    owner
        .post("webhooks", &json!({"url": format!("{}/hook", peer.url), "formIds": [form["formId"]]}))
        .await?;
    let automation = json!({
        "name": "Leads",
        "slug": "leads",
        "trigger": {"type": "form_submission", "formId": form["formId"]},
        "steps": [
            {"id": "send", "type": "fetch", "method": "POST", "url": format!("{}/leads", peer.url),
             "body": {"email": "{{ trigger.payload.email }}"}},
            {"id": "keep", "type": "create_entry", "pageId": page["id"],
             "data": {"email": "{{ trigger.payload.email }}"}},
        ],
    });
    let automation = Automation::create(&owner, &automation).await?;
    owner.submit(&form, &json!({"email": "ada@example.com"})).await?;
    automation.only_run(&owner).await?;

    // Each process exports when it likes.
    let trace =
        until("the spans of the submit, the attempt, the run and its steps to be exported", async || {
            let spans = sink.spans();
            let attempt = spans.iter().find(|span| span.name == "webhook attempt")?.clone();
            let trace: Vec<Span> =
                spans.into_iter().filter(|span| span.trace_id == attempt.trace_id).collect();
            let steps = ["send", "keep"]
                .map(|path| trace.iter().any(|span| span.name == "step" && span.step == path));
            let others = ["request", "delivery", "run"].map(|name| named(&trace, name).is_ok());
            (steps.iter().chain(&others).all(|is_there| *is_there)).then_some(trace)
        })
        .await?;
    let first: Vec<&Span> = trace.iter().filter(|span| span.parent_span_id.is_empty()).collect();
    let submit = named(&trace, "request")?;
    ensure!(first == [submit] && submit.service == "edge-server", "the trace begins with {first:?}");
    for name in ["delivery", "run"] {
        let span = named(&trace, name)?;
        ensure!(span.service == "job-runner" && span.parent_span_id == submit.span_id, "{span:?}");
    }
    let (delivery, run) = (named(&trace, "delivery")?, named(&trace, "run")?);
    for span in &trace {
        let parent = match span.name.as_str() {
            "webhook attempt" => delivery,
            "step" => run,
            _ => continue,
        };
        ensure!(span.parent_span_id == parent.span_id, "{span:?} is not part of {parent:?}");
    }
    let line = until("the log line of the webhook to be exported", async || {
        sink.lines().into_iter().find(|line| line.text == "deactivated a webhook")
    })
    .await?;
    ensure!(line.service == "job-runner" && line.trace_id == submit.trace_id, "{line:?}");
    Ok(())
}

/// The first span with a name.
fn named<'a>(trace: &'a [Span], name: &str) -> Result<&'a Span> {
    trace.iter().find(|span| span.name == name).with_context(|| format!("no span {name} in {trace:?}"))
}
