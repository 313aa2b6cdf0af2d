//! Visits to a form: at the door where its page is ready, else the long way; and what follows when it was sent.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Method, Uri};
use store::forms::OpenForm;
use uuid::Uuid;
use web::{Path, Problem};

use super::{Given, Manner, onward, prefill, why_shut};
use crate::edge::{Edge, Whose};
use crate::hosts;
use crate::replies::Reply;

/// Where forms are shown.
const FOLDER: &str = "/f/";

/// The answer to a request for a form's page, if it can be given right now: the form is known, its page is ready, and
/// the address says nothing but how it is to be shown.
pub(crate) fn hit(edge: &Edge, (method, uri, asked): (&Method, &Uri, &HeaderMap)) -> Option<Reply> {
    let id = uri.path().strip_prefix(FOLDER)?;
    if *method != Method::GET
        || !matches!(edge.whose(hosts::plain(hosts::written(asked, uri)?)?), Whose::Ours)
    {
        return None;
    }
    let id: Uuid = id.parse().ok()?;
    let now = Instant::now();
    let open = edge.forms.known.peek(&id, now)??;
    if open.suspended || why_shut(&open, edge.clock.now()).is_some() {
        return None;
    }
    let query = uri.query().unwrap_or_default();
    let manner = Manner::asked(query, asked);
    if !prefill::is_bare(query) {
        return None;
    }
    let page = edge.forms.ready.peek(&(id, manner), now).filter(|page| page.is_of(&open))?;
    Some(edge.forms.send(edge, &page, asked))
}

/// `/f/<id>`: the form.
pub(crate) async fn show(
    State(edge): State<Edge>,
    id: Result<Path<Uuid>, Problem>,
    request: Request,
) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let manner = Manner::asked(query, request.headers());
    let open = match find(&edge, id).await {
        Ok(open) => open,
        Err(problem) => return edge.forms.problem(manner, &problem),
    };
    let now = edge.clock.now();
    if let Some(why) = why_shut(&open, now) {
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
    State(edge): State<Edge>,
    id: Result<Path<Uuid>, Problem>,
    request: Request,
) -> Response {
    let manner = Manner::asked(request.uri().query().unwrap_or_default(), request.headers());
    match find(&edge, id).await {
        Ok(open) => edge.forms.thanks(&open, manner),
        Err(problem) => edge.forms.problem(manner, &problem),
    }
}

async fn find(edge: &Edge, id: Result<Path<Uuid>, Problem>) -> Result<Arc<OpenForm>, Problem> {
    let Path(id) = id?;
    edge.forms.find(id).await
}

/// Where a browser goes that has sent the form: on, if the form says so and is not framed; else to its thanks.
pub(crate) fn after(open: &OpenForm, manner: Manner) -> Option<HeaderValue> {
    let url = onward(open).filter(|_| !manner.is_embedded);
    let thanks = || format!("{FOLDER}{}/thanks{}", open.form.id, manner.query());
    HeaderValue::from_str(&url.map_or_else(thanks, String::from)).ok()
}
