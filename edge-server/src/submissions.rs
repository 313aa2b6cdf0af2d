//! Taking submissions: checked, then stored with all that follows from them in one transaction.
//!
//! When a visitor has the answer, the submission, its counter and its webhook deliveries are committed;
//! what happens next is the job-runner's work and needs nobody here.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use contract::{Job, Signal};
use domain::answers::{self, Answers};
use domain::forms::Shut;
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};
use store::deliveries::{self, Event};
use store::forms::OpenForm;
use store::submissions::{NewSubmission, Taken, insert_submission};
use uuid::Uuid;
use web::{Code, Json, Path, Problem};

use crate::edge::Edge;

const MAX_BODY_BYTES: usize = 256 << 10;
const EVENT: &str = "submission.created";
const THANKS: &str = "Thank you. Your answers have been received.";

/// How a visitor wants to be answered.
enum Asker {
    /// A program: JSON.
    Program,
    /// A browser that posted the form: a page.
    Browser,
}

pub(crate) async fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "POST"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "content-type, idempotency-key"),
        (header::ACCESS_CONTROL_MAX_AGE, "86400"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

pub(crate) async fn submit(
    State(edge): State<Edge>,
    Path(form_id): Path<Uuid>,
    request: Request,
) -> Result<Response, Response> {
    let answer = take(&edge, form_id, request).await;
    let allow = |mut response: Response| {
        let everybody = header::HeaderValue::from_static("*");
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, everybody);
        response
    };
    answer.map(allow).map_err(|problem| allow(problem.into_response()))
}

async fn take(edge: &Edge, form_id: Uuid, request: Request) -> Result<Response, Problem> {
    let open = edge.forms.find(form_id).await?;
    let (asker, given) = read(&open, request).await?;
    let kept = match (answers::check(&open.form.fields, &given), &asker) {
        (Ok(kept), _) => kept,
        (Err(complaints), Asker::Program) => return Err(Problem::validation(complaints)),
        (Err(complaints), Asker::Browser) => return Ok(edge.forms.page(edge, &open, &given, &complaints)),
    };
    let submission = NewSubmission {
        id: edge.rng.uuid_v7(edge.clock.now()),
        form_id,
        payload: kept,
        created_at: edge.clock.now(),
    };
    match store_with_all_that_follows(edge, &open, &submission).await? {
        Taken::Stored => Ok(thank(edge, &open, &submission, &asker)),
        Taken::Refused(Shut::Closed) => Err(Problem::new(Code::FormClosed, "this form is closed")),
        Taken::Refused(Shut::Full) => {
            Err(Problem::new(Code::FormFull, "this form takes no more submissions"))
        }
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
    store::commit(tx).await?;
    if !due.is_empty()
        && let Err(error) = edge.bus.publish(&Signal::OutboxFilled).await
    {
        tracing::debug!(%error, "the outbox waits for its next sweep");
    }
    Ok(taken)
}

fn thank(edge: &Edge, open: &OpenForm, submission: &NewSubmission, asker: &Asker) -> Response {
    let message = open.form.success_message.as_deref().unwrap_or(THANKS);
    match (asker, &open.form.redirect_url) {
        (Asker::Browser, Some(url)) => Redirect::to(url).into_response(),
        (Asker::Browser, None) => edge.forms.thanks(open, message),
        (Asker::Program, redirect_url) => {
            let body = json!({
                "success": true,
                "submissionId": submission.id,
                "message": message,
                "redirectUrl": redirect_url,
                "createdAt": submission.created_at,
            });
            (StatusCode::CREATED, [(header::CONTENT_TYPE, "application/json")], body.to_string())
                .into_response()
        }
    }
}

/// What was sent: JSON from programs, a posted form from browsers.
async fn read(open: &OpenForm, request: Request) -> Result<(Asker, Answers), Problem> {
    let request =
        request.map(|body| axum::body::Body::new(http_body_util::Limited::new(body, MAX_BODY_BYTES)));
    if !is_posted_form(request.headers()) {
        let Json(given) = Json::<Answers>::from_request(request, &()).await?;
        return Ok((Asker::Program, given));
    }
    let too_large = |_| Problem::new(Code::PayloadTooLarge, "a submission may have at most 256 KiB");
    let body = Bytes::from_request(request, &()).await.map_err(too_large)?;
    let mut pairs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(&body) {
        pairs.entry(name.into_owned()).or_default().push(value.into_owned());
    }
    Ok((Asker::Browser, answers::from_pairs(&open.form.fields, &pairs)))
}

fn is_posted_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';')
        .next()
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded"))
}
