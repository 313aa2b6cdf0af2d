//! The list of analytics sites, and the form for a new one. The only site opens at once.

use axum::extract::State;
use axum::response::Response;
use futures::join;

use super::site_page::root;
use crate::api_client::operations::{ANALYTICS_CREATE, ANALYTICS_LIST, SUBDOMAINS_LIST};
use crate::api_client::{Answer, Call};
use crate::flash::Flash;
use crate::page::{Page, Section, redirect};
use crate::screens::AccountForm;
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Shows the sites. With `all`, a single one is listed too.
pub(crate) async fn list(State(console): State<Console>, viewer: Viewer, query: UrlQuery) -> Response {
    respond(&console, &viewer, &query, |page| page).await
}

/// Makes a site, and leads to its figures, which say how it is counted.
pub(crate) async fn create(State(console): State<Console>, viewer: Viewer, form: AccountForm) -> Response {
    let body = form.to_json(&console.document, &ANALYTICS_CREATE);
    let call = Call::of(&ANALYTICS_CREATE).body(body).idempotency_key(form.idempotency_key());
    match console.call(&viewer, call).await {
        Ok(made) => {
            let path = root(made["site"]["id"].as_str().unwrap_or_default());
            redirect(&console, &path, Some(Flash::AnalyticsSiteMade))
        }
        Err(refusal) => {
            respond(&console, &viewer, &UrlQuery::parse("all=true"), |page| {
                page.problem(&refusal).keep(&form)
            })
            .await
        }
    }
}

async fn respond(
    console: &Console,
    viewer: &Viewer,
    query: &UrlQuery,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let call =
        Call::of(&ANALYTICS_LIST).query("sort", "newest").optional_query("cursor", query.get("cursor"));
    let (account, list, hosted) = join!(
        console.account(viewer),
        console.call(viewer, call),
        console.call(viewer, Call::of(&SUBDOMAINS_LIST).query("limit", "100")),
    );
    let is_asked_for_all = ["all", "cursor"].iter().any(|name| query.get(name).is_some());
    if let Some(id) = only_site(&list).filter(|_| !is_asked_for_all) {
        return redirect(console, &root(id), None);
    }
    let page = Page::new(Section::Analytics, "analytics_sites.html")
        .main("list", &list)
        .with("hosted", hosted.ok().map(|mut hosted| hosted["subdomains"].take()));
    add(page).respond(console, viewer, &account)
}

/// Returns the id of the account's only site.
fn only_site(list: &Answer) -> Option<&str> {
    match list.as_ref().ok()?["sites"].as_array()?.as_slice() {
        [only] => only["id"].as_str(),
        _ => None,
    }
}
