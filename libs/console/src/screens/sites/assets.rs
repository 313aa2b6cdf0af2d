//! Assets: files that stand by themselves, such as images that pages refer to.

use axum::extract::{Request, State};
use axum::response::Response;
use futures::join;
use serde_json::{Value, json};

use super::posted_files::{PostedFile, PostedParts, read_file};
use super::site::items;
use crate::api_client::Call;
use crate::api_client::Refusal;
use crate::api_client::operations::{ASSETS_CREATE, ASSETS_DELETE, ASSETS_LIST};
use crate::flash::Flash;
use crate::page::{Page, Section, redirect};
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

const ADDRESS: &str = "/console/assets";

/// Shows the newest assets, and asks before one is deleted.
pub(crate) async fn list(State(console): State<Console>, viewer: Viewer, query: UrlQuery) -> Response {
    respond(&console, &viewer, &query, |page| page).await
}

/// Stores a posted file as an asset.
pub(crate) async fn create(State(console): State<Console>, viewer: Viewer, request: Request) -> Response {
    let refused = async |refusal: Refusal| {
        let with_problem = |page: Page| page.problem(&refusal);
        respond(&console, &viewer, &UrlQuery::default(), with_problem).await
    };
    // Nothing is read for those who are not signed in.
    if let Err(refusal) = console.account(&viewer).await {
        return refused(refusal).await;
    }
    let read = async {
        let mut parts = PostedParts::of(request)?;
        // The parts are dropped: what follows the file is not read.
        parts.fields().await
    };
    let (form, file) = match read.await {
        Ok(read) => read,
        Err(refusal) => return refused(refusal).await,
    };
    let form = match AccountForm::check(&console, &viewer, form).await {
        Ok(form) => form,
        Err(refused) => return *refused,
    };
    let filename = file.file_name().unwrap_or_default().to_owned();
    let content_type = file.content_type().map_or("application/octet-stream".to_owned(), ToString::to_string);
    let stored = async {
        let PostedFile { file, size_bytes } = read_file(file).await?;
        let body = json!({ "filename": filename, "contentType": content_type, "sizeBytes": size_bytes });
        let call = Call::of(&ASSETS_CREATE).body(body).idempotency_key(form.idempotency_key());
        let made = console.call(&viewer, call).await?;
        match console.file_store.store(made["uploadUrl"].as_str().unwrap_or_default(), file).await {
            // The form was posted twice: its key led to the same asset, which has its bytes.
            Err(refusal) if refusal.code != "conflict" => Err(refusal),
            _ => Ok(()),
        }
    };
    match stored.await {
        Ok(()) => redirect(&console, ADDRESS, Some(Flash::AssetStored)),
        Err(refusal) => refused(refusal).await,
    }
}

/// Deletes an asset.
pub(crate) async fn delete(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    _: AccountForm,
) -> Response {
    match console.call(&viewer, Call::of(&ASSETS_DELETE).path("id", path.get("asset"))).await {
        Ok(_) => redirect(&console, ADDRESS, Some(Flash::Deleted)),
        Err(refusal) => respond(&console, &viewer, &UrlQuery::default(), |page| page.problem(&refusal)).await,
    }
}

async fn respond(
    console: &Console,
    viewer: &Viewer,
    query: &UrlQuery,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let call = Call::of(&ASSETS_LIST).query("sort", "newest").query("limit", "50");
    let (account, list) = join!(
        console.account(viewer),
        console.call(viewer, call.optional_query("cursor", query.get("cursor"))),
    );
    let asked: Option<&Value> = list.as_ref().ok().and_then(|list| {
        let id = query.get("delete")?;
        items(list, "assets").find(|asset| asset["id"] == id)
    });
    let page = Page::new(Section::Sites, "sites/assets.html").main("list", &list).with("confirm", asked);
    add(page).respond(console, viewer, &account)
}
