//! The list of a site's pages, and the archived entries of deleted ones.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use serde_json::{Value, json};

use crate::api_client::Call;
use crate::api_client::operations::{ENTRIES_ARCHIVES, PAGES_LIST};
use crate::screens::sites::site::{self, items, tag};
use crate::screens::{PathParameters, folders};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Shows the newest pages.
pub(crate) async fn list(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    let id = path.get("id");
    let mut list =
        Call::of(&PAGES_LIST).query("subdomainId", id).query("sort", "newest").query("limit", "50");
    for name in ["slug", "collection", "folderId", "cursor"] {
        list = list.optional_query(name, query.get(name));
    }
    let archives = Call::of(&ENTRIES_ARCHIVES).query("sort", "newest").query("limit", "100");
    let (account, site, list, archives, folders) = join!(
        console.account(&viewer),
        site::find(&console, &viewer, id),
        console.call(&viewer, list),
        console.call(&viewer, archives),
        folders::choices(&console, &viewer),
    );
    let pages: Vec<Value> =
        list.iter().flat_map(|list| items(list, "pages")).cloned().map(with_state).collect();
    let archived: Vec<Value> = archives
        .iter()
        .flat_map(|list| items(list, "archives"))
        .filter(|archive| archive["subdomainId"] == id)
        .cloned()
        .collect();
    site::page("sites/pages.html", "pages", &site)
        .panel("list", &list)
        .panel("archives", &archives.map(|_| Value::Null))
        .with("pages", pages)
        .with("archived", archived)
        .with("slug", query.get("slug"))
        .with("collection", query.get("collection"))
        .with("folders", folders)
        .with("folder_id", query.get("folderId"))
        .respond(&console, &viewer, &account)
}

/// Adds to a page what its tag says.
pub(super) fn with_state(mut page: Value) -> Value {
    let state = if page["isPublished"] == true {
        ("good", "done", "Published")
    } else if page["publishAt"].is_string() {
        ("warn", "retry", "Scheduled")
    } else {
        ("", "archive", "Not published")
    };
    page["state"] = tag(state);
    page["name"] = json!(match page["slug"].as_str().unwrap_or_default() {
        "index" => "/".to_owned(),
        slug => format!("/{slug}"),
    });
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_published_scheduled_or_neither() {
        let shown = |page: Value| {
            let page = with_state(page);
            (page["state"]["text"].clone(), page["name"].clone())
        };
        let at = "2099-01-01T00:00:00Z";
        assert_eq!(shown(json!({ "isPublished": true, "slug": "index" })), (json!("Published"), json!("/")));
        let later = json!({ "isPublished": false, "publishAt": at, "slug": "a" });
        assert_eq!(shown(later), (json!("Scheduled"), json!("/a")));
        let hidden = json!({ "isPublished": false, "publishAt": null, "slug": "a" });
        assert_eq!(shown(hidden).0, "Not published");
    }
}
