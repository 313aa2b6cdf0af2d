//! The editor of a page, with its versions and entries.

use axum::extract::State;
use axum::response::Response;
use domain::entries::Template;
use futures::join;
use serde_json::{Value, json};

use super::list::with_state;
use super::posted_page::local_of;
use crate::api_client::operations::{ENTRIES_ARCHIVES, ENTRIES_LIST, PAGES_READ, VERSIONS_LIST};
use crate::api_client::{Answer, Call};
use crate::page::Page;
use crate::screens::PathParameters;
use crate::screens::sites::site::{self, items, not_here};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// The document that a new page begins with.
const SAMPLE: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<title>A new page</title>
<style>body { max-width: 40rem; margin: 3rem auto; padding: 0 1rem; font: 1.125rem/1.6 system-ui }</style>
<h1>A new page</h1>
<p>Write something here.</p>
</html>
";

/// Shows a page.
pub(crate) async fn show(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    respond(&console, &viewer, (path.get("id"), path.get("page")), &query, |page| page).await
}

/// Shows the form for a new page.
pub(crate) async fn new(State(console): State<Console>, viewer: Viewer, path: PathParameters) -> Response {
    respond_new(&console, &viewer, path.get("id"), |page| page).await
}

/// Shows the form for a new page with additions.
pub(super) async fn respond_new(
    console: &Console,
    viewer: &Viewer,
    site_id: &str,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let (account, site) = join!(console.account(viewer), site::find(console, viewer, site_id));
    let page = site::page("sites/page.html", "pages", &site).with("sample", SAMPLE);
    add(page).respond(console, viewer, &account)
}

/// Shows a page of a site with additions.
pub(super) async fn respond(
    console: &Console,
    viewer: &Viewer,
    (site_id, id): (&str, &str),
    query: &UrlQuery,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let entries = Call::of(&ENTRIES_LIST)
        .path("id", id)
        .query("limit", "20")
        .optional_query("cursor", query.get("cursor"));
    let archives = Call::of(&ENTRIES_ARCHIVES).query("sort", "newest").query("limit", "100");
    let (account, site, page, versions, entries, archives) = join!(
        console.account(viewer),
        site::find(console, viewer, site_id),
        find(console, viewer, site_id, id),
        console.call(viewer, Call::of(&VERSIONS_LIST).path("id", id)),
        console.call(viewer, entries),
        console.call(viewer, archives),
    );
    let zone = account.as_ref().ok().and_then(|account| account["timezone"].as_str()).unwrap_or("UTC");
    let found = page.map(|mut page| {
        let has_crlf = page["html"].as_str().is_some_and(|html| html.contains("\r\n"));
        page["lineEnds"] = json!(if has_crlf { "crlf" } else { "lf" });
        page["entryFields"] = json!(entry_fields(&page));
        page["publishAtLocal"] = json!(page["publishAt"].as_str().and_then(|at| local_of(at, zone)));
        page
    });
    let archived: Vec<Value> = archives
        .iter()
        .flat_map(|list| items(list, "archives"))
        .filter(|archive| archive["subdomainId"] == site_id)
        .cloned()
        .collect();
    let page = site::page("sites/page.html", "pages", &site)
        .main("page", &found)
        .panel("versions", &versions)
        .panel("entries", &entries)
        .with("archived", archived)
        .with("asks_delete", query.get("delete").is_some());
    add(page).respond(console, viewer, &account)
}

/// Returns the names of the values that an entry of the page has; none without a template.
fn entry_fields(page: &Value) -> Vec<String> {
    let template = page["entryTemplate"].as_str().and_then(|template| Template::parse(template).ok());
    template.iter().flat_map(Template::names).map(str::to_owned).collect()
}

/// Returns a page of this site.
pub(super) async fn find(console: &Console, viewer: &Viewer, site_id: &str, id: &str) -> Answer {
    let page = console.call(viewer, Call::of(&PAGES_READ).path("id", id)).await?;
    if page["subdomainId"] != site_id {
        return Err(not_here("This site has no such page. It may belong to another site of the account."));
    }
    Ok(with_state(page))
}
