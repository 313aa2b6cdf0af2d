//! Makes, changes and deletes pages.

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::editor::{find, respond, respond_new};
use super::posted_page::members;
use crate::api_client::Call;
use crate::api_client::operations::{PAGES_CREATE, PAGES_DELETE, PAGES_UPDATE};
use crate::flash::Flash;
use crate::formatting::line_diff;
use crate::page::{Page, redirect};
use crate::screens::sites::site::{path, path_of};
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Makes a page.
pub(crate) async fn create(
    State(console): State<Console>,
    viewer: Viewer,
    parameters: PathParameters,
    AccountForm { account, form }: AccountForm,
) -> Response {
    let site_id = parameters.get("id");
    let mut page = members(&form, account["timezone"].as_str().unwrap_or("UTC"));
    page.insert("slug".to_owned(), json!(form.get("slug").unwrap_or_default()));
    page.insert("subdomainId".to_owned(), json!(site_id));
    let call = Call::of(&PAGES_CREATE).body(Value::Object(page)).idempotency_key(form.idempotency_key());
    match console.call(&viewer, call).await {
        Ok(made) => {
            let path = path_of(site_id, "pages", made["id"].as_str().unwrap_or_default());
            redirect(&console, &path, Some(Flash::PageMade))
        }
        Err(refusal) => {
            respond_new(&console, &viewer, site_id, |page| page.problem(&refusal).keep(&form)).await
        }
    }
}

/// Changes a page. If it has changed since its form was made, both texts are shown, and posting again keeps the own one.
pub(crate) async fn update(
    State(console): State<Console>,
    viewer: Viewer,
    parameters: PathParameters,
    AccountForm { account, form }: AccountForm,
) -> Response {
    let (site_id, id) = (parameters.get("id"), parameters.get("page"));
    let mut page = members(&form, account["timezone"].as_str().unwrap_or("UTC"));
    page.insert("ifUnmodifiedSince".to_owned(), json!(form.get("updated_at")));
    let html = page["html"].as_str().unwrap_or_default().to_owned();
    let call = Call::of(&PAGES_UPDATE).path("id", id).body(Value::Object(page));
    let Err(refusal) = console.call(&viewer, call).await else {
        return redirect(&console, &path_of(site_id, "pages", id), Some(Flash::PageSaved));
    };
    let mut stale = None;
    if refusal.code == "stale_write"
        && let Ok(current) = find(&console, &viewer, site_id, id).await
    {
        let diff = line_diff::compare(current["html"].as_str().unwrap_or_default(), &html);
        stale = Some(json!({ "current": current, "diff": diff }));
    }
    let keep = |page: Page| {
        let page = page.problem(&refusal).keep(&form);
        page.with("stale", stale)
    };
    respond(&console, &viewer, (site_id, id), &UrlQuery::default(), keep).await
}

/// Deletes a page.
pub(crate) async fn delete(
    State(console): State<Console>,
    viewer: Viewer,
    parameters: PathParameters,
    _: AccountForm,
) -> Response {
    let (site_id, id) = (parameters.get("id"), parameters.get("page"));
    match console.call(&viewer, Call::of(&PAGES_DELETE).path("id", id)).await {
        Ok(_) => redirect(&console, &format!("{}/pages", path(site_id)), Some(Flash::PageDeleted)),
        Err(refusal) => {
            respond(&console, &viewer, (site_id, id), &UrlQuery::default(), |page| page.problem(&refusal))
                .await
        }
    }
}
