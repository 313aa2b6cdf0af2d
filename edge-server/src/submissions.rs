//! Taking submissions: checked, then stored with all that follows from them in one transaction.
//!
//! When a visitor has the answer, the submission, its counter and its webhook deliveries are committed;
//! what happens next is the job-runner's work and needs nobody here.

use std::collections::BTreeMap;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, post};
use contract::{Job, Signal};
use domain::answers::{self, Answers};
use domain::forms::Shut;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::{Value, json};
use store::deliveries::{self, Event};
use store::forms::OpenForm;
use store::submissions::{NewSubmission, Taken, insert_submission};
use uuid::Uuid;
use web::{Code, Json, Path, Problem};

use crate::edge::Edge;
use crate::forms::{onward, refusal};

const MAX_BODY_BYTES: usize = 256 << 10;
const EVENT: &str = "submission.created";
const THANKS: &str = "Thank you. Your answers have been received.";

/// How a visitor wants to be answered.
#[derive(Clone, Copy)]
enum Asker {
    /// A program: JSON.
    Program,
    /// A browser that posted the form: a page.
    Browser,
}

/// Submitting, from pages of any origin: its answers and refusals of every kind may be read by their scripts.
pub(crate) fn route() -> MethodRouter<Edge> {
    post(submit).options(preflight).layer(axum::middleware::map_response(async |mut response: Response| {
        let everybody = HeaderValue::from_static("*");
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, everybody);
        response
    }))
}

async fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "POST"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "content-type, idempotency-key"),
        (header::ACCESS_CONTROL_MAX_AGE, "86400"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

async fn submit(
    State(edge): State<Edge>,
    Path(form_id): Path<Uuid>,
    request: Request,
) -> Result<Response, Problem> {
    let open = edge.forms.find(form_id).await?;
    let (asker, given) = read(&open, request).await?;
    let kept = match (answers::check(&open.form.fields, &given), asker) {
        (Ok(kept), _) => kept,
        (Err(complaints), Asker::Program) => return Err(Problem::validation(complaints)),
        (Err(complaints), Asker::Browser) => return Ok(edge.forms.page(&open, &given, &complaints)),
    };
    let now = edge.clock.now();
    let submission = NewSubmission { id: edge.rng.uuid_v7(now), form_id, payload: kept, created_at: now };
    match store_with_all_that_follows(&edge, &open, &submission).await? {
        Taken::Stored => Ok(thank(&edge, &open, &submission, asker)),
        Taken::Refused(why) => refuse(&edge, &open, why, asker),
        Taken::NoForm => Err(Problem::new(Code::NotFound, "there is no form at this address")),
    }
}

async fn store_with_all_that_follows(
    edge: &Edge,
    open: &OpenForm,
    submission: &NewSubmission,
) -> Result<Taken, Problem> {
    let now = submission.created_at;
    let mut tx = store::begin(&edge.db).await?;
    let plan_limit = open.plan.limits().submissions_per_form;
    let taken = insert_submission(&mut tx, open.account_id, submission, plan_limit).await?;
    if taken != Taken::Stored {
        return Ok(taken);
    }
    let payload = json!({
        "type": EVENT,
        "timestamp": now,
        "data": {
            "formId": open.form.id,
            "formName": open.form.name,
            "submissionId": submission.id,
            "externalId": Value::Null,
            "submittedAt": now,
            "fields": submission.payload,
        },
    });
    let event = Event {
        name: EVENT,
        form_id: open.form.id,
        submission_id: Some(submission.id),
        payload: &payload,
        at: now,
    };
    let new_id = || edge.rng.uuid_v7(now);
    let due = deliveries::insert_deliveries(&mut tx, open.account_id, &event, new_id).await?;
    let traceparent = service::telemetry::traceparent();
    for delivery_id in &due {
        let job = Job::DeliverWebhookV1 { delivery_id: *delivery_id };
        store::outbox::insert_job(&mut tx, &job, traceparent.as_deref(), now, now).await?;
    }
    store::commit(tx).await.map_err(Problem::outcome_unknown)?;
    if !due.is_empty() {
        tokio::spawn(tell_the_relay(edge.clone()));
    }
    Ok(taken)
}

/// Beside the answer, not before it: Redis may be away, and then this takes its time.
async fn tell_the_relay(edge: Edge) {
    if let Err(error) = edge.bus.publish(&Signal::OutboxFilled).await {
        tracing::debug!(%error, "the outbox waits for its next sweep");
    }
}

fn thank(edge: &Edge, open: &OpenForm, submission: &NewSubmission, asker: Asker) -> Response {
    let message = open.form.success_message.as_deref().unwrap_or(THANKS);
    match (asker, onward(open)) {
        (Asker::Browser, Some(url)) => Redirect::to(url.as_str()).into_response(),
        (Asker::Browser, None) => edge.forms.notice(StatusCode::OK, &open.form.name, message),
        (Asker::Program, url) => {
            let body = json!({
                "success": true,
                "submissionId": submission.id,
                "message": message,
                "redirectUrl": url,
                "createdAt": submission.created_at,
            });
            (StatusCode::CREATED, [(header::CONTENT_TYPE, "application/json")], body.to_string())
                .into_response()
        }
    }
}

fn refuse(edge: &Edge, open: &OpenForm, why: Shut, asker: Asker) -> Result<Response, Problem> {
    let code = match why {
        Shut::Closed => Code::FormClosed,
        Shut::Full => Code::FormFull,
    };
    match asker {
        Asker::Browser => Ok(edge.forms.shut(open, why)),
        Asker::Program => Err(Problem::new(code, refusal(why))),
    }
}

/// What was sent: JSON from programs, a posted form from browsers.
async fn read(open: &OpenForm, request: Request) -> Result<(Asker, Answers), Problem> {
    let is_posted_form = is_posted_form(request.headers());
    let (head, body) = request.into_parts();
    let body = whole(body).await?;
    if !is_posted_form {
        let Json(given) = Json::<Answers>::from_request(Request::from_parts(head, body.into()), &()).await?;
        return Ok((Asker::Program, given));
    }
    let mut pairs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(&body) {
        pairs.entry(name.into_owned()).or_default().push(value.into_owned());
    }
    Ok((Asker::Browser, answers::from_pairs(&open.form.fields, &pairs)))
}

async fn whole(body: Body) -> Result<Bytes, Problem> {
    let read = Limited::new(body, MAX_BODY_BYTES).collect().await;
    read.map(http_body_util::Collected::to_bytes).map_err(|error| {
        if error.is::<LengthLimitError>() {
            return Problem::new(Code::PayloadTooLarge, "a submission may have at most 256 KiB");
        }
        Problem::new(Code::MalformedJson, "the body could not be read to its end")
    })
}

fn is_posted_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';')
        .next()
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded"))
}
