//! Taking submissions: checked, then stored with all that follows from them in one transaction.
//!
//! When a visitor has the answer, the submission, its counter and its webhook deliveries are committed;
//! what happens next is the job-runner's work and needs nobody here.

use std::collections::BTreeMap;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, post};
use chrono::{DateTime, Utc};
use contract::Signal;
use domain::answers::{self, Answers};
use domain::forms::Shut;
use domain::submissions::BYTES_MAX;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::json;
use store::forms::OpenForm;
use store::submissions::{NewSubmission, Taken, Writer, take_submission};
use uuid::Uuid;
use web::{Code, Json, Path, Problem};

use crate::edge::Edge;
use crate::forms::{onward, refusal};

/// How often a submission is looked at anew whose form is edited meanwhile.
const TRIES: usize = 5;
const ALREADY: &str = "These answers were received before.";
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
    let sent = read(request).await?;
    for _ in 0..TRIES {
        let open = edge.forms.find(form_id).await?;
        let (asker, given) = sent.answers(&open);
        let kept = match (answers::check(&open.form.fields, &given), asker) {
            (Ok(kept), _) => kept,
            (Err(complaints), Asker::Program) => return Err(Problem::validation(complaints)),
            (Err(complaints), Asker::Browser) => return Ok(edge.forms.page(&open, &given, &complaints)),
        };
        let now = edge.clock.now();
        let submission = NewSubmission {
            id: edge.rng.uuid_v7(now),
            external_id: None,
            payload: kept,
            spam_reasons: Vec::new(),
        };
        match take(&edge, &open, &submission, now).await? {
            Taken::Stored(_) => return Ok(thank(&edge, &open, &submission, now, asker)),
            Taken::Refused(why) => return refuse(&edge, &open, why, asker),
            Taken::Duplicate => return duplicate(&edge, &open, asker),
            Taken::NoForm => return Err(Problem::new(Code::NotFound, "there is no form at this address")),
            // It is edited right now: the next look shows what it has become.
            Taken::Changed => edge.forms.forget(form_id),
        }
    }
    Err(Problem::away(true))
}

async fn take(
    edge: &Edge,
    open: &OpenForm,
    submission: &NewSubmission,
    now: DateTime<Utc>,
) -> Result<Taken, Problem> {
    let traceparent = service::telemetry::traceparent();
    let new_id = || edge.rng.uuid_v7(now);
    let writer = Writer { now, traceparent: traceparent.as_deref(), new_id: &new_id };
    let plan_limit = open.plan.limits().submissions_per_form;
    let mut tx = store::begin(&edge.db).await?;
    let taken =
        take_submission(&mut tx, open.account_id, &open.form, submission, plan_limit, &writer).await?;
    if let Taken::Stored(signals) = &taken {
        store::commit(tx).await.map_err(Problem::outcome_unknown)?;
        if !signals.is_empty() {
            tokio::spawn(tell(edge.clone(), signals.clone()));
        }
    }
    Ok(taken)
}

/// Beside the answer, not before it: Redis may be away, and then this takes its time.
async fn tell(edge: Edge, signals: Vec<Signal>) {
    for signal in signals {
        if let Err(error) = edge.bus.publish(&signal).await {
            tracing::debug!(%error, "the outbox waits for its next sweep");
        }
    }
}

fn thank(
    edge: &Edge,
    open: &OpenForm,
    submission: &NewSubmission,
    now: DateTime<Utc>,
    asker: Asker,
) -> Response {
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
                "createdAt": now,
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

fn duplicate(edge: &Edge, open: &OpenForm, asker: Asker) -> Result<Response, Problem> {
    match asker {
        Asker::Browser => Ok(edge.forms.notice(StatusCode::CONFLICT, &open.form.name, ALREADY)),
        Asker::Program => Err(Problem::new(Code::DuplicateSubmission, ALREADY)),
    }
}

/// What was sent: JSON from programs, a posted form from browsers.
enum Sent {
    Json(Answers),
    Posted(BTreeMap<String, Vec<String>>),
}

impl Sent {
    /// As answers to what the form asks.
    fn answers(&self, open: &OpenForm) -> (Asker, Answers) {
        match self {
            Self::Json(given) => (Asker::Program, given.clone()),
            Self::Posted(pairs) => (Asker::Browser, answers::from_pairs(&open.form.fields, pairs)),
        }
    }
}

async fn read(request: Request) -> Result<Sent, Problem> {
    let is_posted_form = is_posted_form(request.headers());
    let (head, body) = request.into_parts();
    let body = whole(body).await?;
    if !is_posted_form {
        let Json(given) = Json::<Answers>::from_request(Request::from_parts(head, body.into()), &()).await?;
        return Ok(Sent::Json(given));
    }
    let mut pairs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(&body) {
        pairs.entry(name.into_owned()).or_default().push(value.into_owned());
    }
    Ok(Sent::Posted(pairs))
}

async fn whole(body: Body) -> Result<Bytes, Problem> {
    let read = Limited::new(body, BYTES_MAX).collect().await;
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
