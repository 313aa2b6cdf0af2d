//! Shows the list, and the submission that is open.

use axum::extract::State;
use axum::response::Response;
use futures::{future::OptionFuture, join};
use serde_json::{Value, json};

use super::effects::{steps, webhook_names};
use super::view::SubmissionView;
use crate::api_client::operations::{FORMS_READ, SUBMISSIONS_LIST, SUBMISSIONS_READ, WEBHOOKS_LIST};
use crate::api_client::{Answer, Call, Refusal};
use crate::page::{Page, Section};
use crate::screens::PathParameters;
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// What a page shows beside the list.
#[derive(Debug, Default)]
pub(super) struct Shown<'a> {
    /// The submission that is open.
    pub(super) chosen: Option<&'a str>,
    /// Why a write was refused.
    pub(super) problem: Option<Refusal>,
    /// The submissions to delete, if the viewer confirms it.
    pub(super) to_delete: Vec<&'a str>,
}

/// Shows the list.
pub(super) async fn list(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    show(&console, &viewer, path.get("id"), &query, Shown::default()).await
}

/// Shows a submission beside the list.
pub(super) async fn read(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    let shown = Shown { chosen: Some(path.get("submission")), ..Shown::default() };
    show(&console, &viewer, path.get("id"), &query, shown).await
}

/// Shows the list and what stands beside it.
pub(super) async fn show(
    console: &Console,
    viewer: &Viewer,
    form_id: &str,
    query: &UrlQuery,
    Shown { chosen: chosen_id, problem, to_delete }: Shown<'_>,
) -> Response {
    let submissions = |limit: &str| Call::of(&SUBMISSIONS_LIST).path("id", form_id).query("limit", limit);
    let mut list = submissions("50");
    for name in ["status", "search", "cursor"] {
        list = list.optional_query(name, query.get(name));
    }
    // The API counts on the first page only.
    let first = query.get("cursor").map(|_| console.call(viewer, submissions("1")));
    let read = |id| console.call(viewer, Call::of(&SUBMISSIONS_READ).path("id", form_id).path("subId", id));
    let webhooks = |_| console.call(viewer, Call::of(&WEBHOOKS_LIST).query("limit", "100"));
    let (account, form, list, chosen, webhooks, first) = join!(
        console.account(viewer),
        console.call(viewer, Call::of(&FORMS_READ).path("id", form_id)),
        console.call(viewer, list),
        OptionFuture::from(chosen_id.map(read)),
        OptionFuture::from(chosen_id.map(webhooks)),
        OptionFuture::from(first),
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
        .with("counts", counts(first.as_ref().unwrap_or(&list)))
        .with("status", query.get("status"))
        .with("search", query.get("search"))
        .with("cursor", query.get("cursor"))
        .with("newer", neighbour(at.and_then(|at| at.checked_sub(1))))
        .with("older", neighbour(at.map(|at| at + 1)))
        .with("to_delete", to_delete)
        .with("items", &items);
    match chosen {
        Some(Ok(answer)) => {
            let names = webhooks.and_then(Result::ok).map(|list| webhook_names(&list)).unwrap_or_default();
            page = page
                .with("chosen", SubmissionView::new(fields, &answer["data"]))
                .with("effects", steps(&answer, &names));
        }
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

/// Returns the counts by folder of the inbox; null if they are not known.
fn counts(list: &Answer) -> Value {
    let Some(counts) = list.as_ref().ok().map(|list| &list["counts"]).filter(|counts| counts.is_object())
    else {
        return Value::Null;
    };
    let count = |status: &str| counts[status].as_i64().unwrap_or_default();
    let all = count("received") + count("spam") + count("archived");
    json!({ "": count("received"), "spam": count("spam"), "archived": count("archived"), "all": all })
}
