//! The list of forms.

use axum::extract::State;
use axum::response::Response;
use futures::join;

use super::folders;
use crate::api_client::Call;
use crate::api_client::operations::FORMS_LIST;
use crate::page::{Page, Section};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Shows the newest forms, of a folder if one is chosen.
pub(crate) async fn list(State(console): State<Console>, viewer: Viewer, query: UrlQuery) -> Response {
    let call = Call::of(&FORMS_LIST)
        .query("sort", "newest")
        .optional_query("folderId", query.get("folderId"))
        .optional_query("cursor", query.get("cursor"));
    let (account, list, folders) =
        join!(console.account(&viewer), console.call(&viewer, call), folders::choices(&console, &viewer));
    Page::new(Section::Forms, "forms.html")
        .main("list", &list)
        .with("folders", folders)
        .with("folder_id", query.get("folderId"))
        .respond(&console, &viewer, &account)
}
