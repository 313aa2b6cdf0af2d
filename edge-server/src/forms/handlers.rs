//! Visits to a form: at the door where its page is ready, else the long way; and what follows when it was sent.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use store::forms::OpenForm;
use uuid::Uuid;
use web::{Path, Problem};

use super::languages::Language;
use super::remembered::shuts_before;
use super::{Given, Presentation, Ready, Remembered, closed_reason, prefill, redirect_target};
use crate::sites::classify_host;
use crate::sites::classify_host::HostKind;
use crate::sites::connection_cache::{Memory, Validity};
use crate::sites::page_lookup::PageRequest;
use crate::sites::page_response::Reply;
use crate::state::EdgeState;

/// Where forms are shown.
const FOLDER: &str = "/f/";

/// The page of a form, if it can be sent right now: the form is known, its page is ready, and the address says nothing
/// but how it is to be shown. `languages` is the value of `Accept-Language`.
pub(crate) fn find(
    edge: &EdgeState,
    memory: &mut Memory,
    wanted: &PageRequest<'_>,
    languages: Option<&[u8]>,
    now: Instant,
) -> Option<Arc<Ready>> {
    if !wanted.path.starts_with(FOLDER) {
        return None;
    }
    let forms = &edge.forms;
    let known = memory.form.as_ref().filter(|known| forms.forgotten.is_current(known.belief, now));
    if let Some(page) = known.and_then(|known| known.page(wanted, languages)) {
        return Some(page);
    }
    let as_of = forms.forgotten.count();
    let id = form_at(edge, wanted)?;
    let (open, until) = forms.known.peek_with_expiry(&id, now)?;
    let open = open.filter(|open| !open.suspended)?;
    let today = edge.clock.now();
    if closed_reason(&open, today).is_some() {
        return None;
    }
    let manner = Presentation::asked_or(wanted.query, || Language::liked_by(languages.into_iter()));
    let page = forms.ready.peek(&(id, manner), now).filter(|page| page.is_of(&open))?;
    let left = open.form.closes_at.map(|closes_at| closes_at - today);
    let belief = Validity { until: shuts_before(until, now, left), as_of };
    memory.form = Remembered::new(wanted, languages, &page, belief);
    Some(page)
}

/// The same, asked about anew or made if it isn't there right now. `None` for all that isn't simply sent.
pub(crate) async fn ask(
    edge: &EdgeState,
    wanted: &PageRequest<'_>,
    languages: Option<&[u8]>,
) -> Option<Arc<Ready>> {
    let open = edge.forms.find(form_at(edge, wanted)?).await.ok()?;
    if closed_reason(&open, edge.clock.now()).is_some() {
        return None;
    }
    let manner = Presentation::asked_or(wanted.query, || Language::liked_by(languages.into_iter()));
    edge.forms.ready(&open, manner).await
}

/// The form that is wanted with nothing filled in.
fn form_at(edge: &EdgeState, wanted: &PageRequest<'_>) -> Option<Uuid> {
    let id = wanted.path.strip_prefix(FOLDER)?;
    let is_ours = matches!(
        classify_host::classify_host(&edge.addresses, classify_host::plain(wanted.host)?),
        HostKind::Base
    );
    if is_ours && prefill::is_bare(wanted.query) { id.parse().ok() } else { None }
}

/// The answer to a request that hyper has read, if it can be given right now.
pub(crate) fn hit(
    edge: &EdgeState,
    memory: &mut Memory,
    wanted: &PageRequest<'_>,
    asked: &HeaderMap,
) -> Option<Reply> {
    let mut languages = asked.get_all(header::ACCEPT_LANGUAGE).iter().map(HeaderValue::as_bytes);
    let (first, None) = (languages.next(), languages.next()) else { return None };
    let page = find(edge, memory, wanted, first, Instant::now())?;
    Some(edge.forms.send(edge, &page, asked))
}

/// `/f/<id>`: the form.
pub(crate) async fn show(
    State(edge): State<EdgeState>,
    id: Result<Path<Uuid>, Problem>,
    request: Request,
) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let manner = Presentation::asked(query, request.headers());
    let open = match look_up(&edge, id).await {
        Ok(open) => open,
        Err(problem) => return edge.forms.problem(manner, &problem),
    };
    let now = edge.clock.now();
    if let Some(why) = closed_reason(&open, now) {
        return edge.forms.shut(&open, manner, why);
    }
    let answers = prefill::read(&open.form.fields, query);
    if answers.is_empty()
        && let Some(page) = edge.forms.ready(&open, manner).await
    {
        return edge.forms.send(&edge, &page, request.headers()).map(Body::new);
    }
    edge.forms.page(&open, manner, &Given { answers, ..Given::default() }, now)
}

/// `/f/<id>/thanks`: what is shown to whoever has sent it.
pub(crate) async fn thank(
    State(edge): State<EdgeState>,
    id: Result<Path<Uuid>, Problem>,
    request: Request,
) -> Response {
    let manner = Presentation::asked(request.uri().query().unwrap_or_default(), request.headers());
    match look_up(&edge, id).await {
        Ok(open) => edge.forms.thanks(&open, manner),
        Err(problem) => edge.forms.problem(manner, &problem),
    }
}

async fn look_up(edge: &EdgeState, id: Result<Path<Uuid>, Problem>) -> Result<Arc<OpenForm>, Problem> {
    let Path(id) = id?;
    edge.forms.find(id).await
}

/// Where a browser goes that has sent the form: on, if the form says so and is not framed; else to its thanks.
pub(crate) fn after(open: &OpenForm, manner: Presentation) -> Option<HeaderValue> {
    let url = redirect_target(open).filter(|_| !manner.is_embedded);
    let thanks = || format!("{FOLDER}{}/thanks{}", open.form.id, manner.query());
    HeaderValue::from_str(&url.map_or_else(thanks, String::from)).ok()
}
