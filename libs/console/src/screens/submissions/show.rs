//! Shows the list, and the submission that is open.

use axum::extract::State;
use axum::response::Response;
use futures::{future::OptionFuture, join};
use serde_json::Value;

use super::SubmissionView;
use crate::api_client::operations::{FORMS_READ, SUBMISSIONS_LIST, SUBMISSIONS_READ};
use crate::api_client::{Call, Refusal};
use crate::page::{Page, Section};
use crate::screens::PathParameters;
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Shows the list.
pub(crate) async fn list(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    show(&console, &viewer, path.get("id"), None, &query, None).await
}

/// Shows a submission beside the list.
pub(crate) async fn read(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    show(&console, &viewer, path.get("id"), Some(path.get("submission")), &query, None).await
}

/// Shows the list, the submission that is open, and why a write was refused.
pub(super) async fn show(
    console: &Console,
    viewer: &Viewer,
    form_id: &str,
    chosen_id: Option<&str>,
    query: &UrlQuery,
    problem: Option<Refusal>,
) -> Response {
    let mut list = Call::of(&SUBMISSIONS_LIST).path("id", form_id).query("limit", "50");
    for name in ["status", "search", "cursor"] {
        list = list.optional_query(name, query.get(name));
    }
    let read = |id| console.call(viewer, Call::of(&SUBMISSIONS_READ).path("id", form_id).path("subId", id));
    let (account, form, list, chosen) = join!(
        console.account(viewer),
        console.call(viewer, Call::of(&FORMS_READ).path("id", form_id)),
        console.call(viewer, list),
        OptionFuture::from(chosen_id.map(read)),
    );
    let fields = form.as_ref().unwrap_or(&Value::Null);
    let submissions = list.as_ref().ok().and_then(|list| list["submissions"].as_array());
    let items: Vec<_> =
        submissions.into_iter().flatten().map(|one| SubmissionView::new(fields, one)).collect();
    let at = items.iter().position(|one| Some(one.id.as_str()) == chosen_id);
    let neighbour = |at: Option<usize>| at.and_then(|at| items.get(at)).map(|one| one.id.clone());
    let mut page = Page::new(Section::Forms, "submissions.html")
        .main("form", &form)
        .panel("list", &list)
        .with("status", query.get("status"))
        .with("search", query.get("search"))
        .with("cursor", query.get("cursor"))
        .with("newer", neighbour(at.and_then(|at| at.checked_sub(1))))
        .with("older", neighbour(at.map(|at| at + 1)))
        .with("items", &items);
    match chosen {
        Some(Ok(answer)) => page = page.with("chosen", SubmissionView::new(fields, &answer["data"])),
        Some(Err(refusal)) if form.is_ok() => {
            page = page.status(refusal.status()).with("pane_refusal", refusal);
        }
        _ => {}
    }
    if let Some(problem) = problem {
        page = page.status(problem.status()).with("problem", problem);
    }
    page.respond(console, viewer, &account)
}
