//! The site that a screen is about: its subdomain, and the pages of the console for its parts.

use http::StatusCode;
use percent_encoding::utf8_percent_encode;
use serde_json::{Value, json};

use crate::api_client::operations::SUBDOMAINS_LIST;
use crate::api_client::{Answer, Call, Refusal};
use crate::page::{Page, Section};
use crate::state::Console;
use crate::url_query::PATH_SEGMENT;
use crate::viewer::Viewer;

/// Pages of the list that are read at most. The API reads no single subdomain.
const LISTS_MAX: usize = 20;

/// Returns a site of the account.
pub(super) async fn find(console: &Console, viewer: &Viewer, id: &str) -> Answer {
    let mut cursor: Option<String> = None;
    for _ in 0..LISTS_MAX {
        let call =
            Call::of(&SUBDOMAINS_LIST).query("limit", "100").optional_query("cursor", cursor.as_deref());
        let list = console.call(viewer, call).await?;
        let found = items(&list, "subdomains").find(|site| site["id"] == id).cloned();
        if let Some(mut site) = found {
            site["path"] = json!(path(id));
            return Ok(site);
        }
        cursor = list["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    Err(not_here(
        "There is no such site in this account. If a colleague sent you the link, it may belong to another one.",
    ))
}

/// A page of a site's part, such as `deploys`.
pub(super) fn page(template: &'static str, tab: &str, site: &Answer) -> Page {
    Page::new(Section::Sites, template).main("site", site).with("tab", tab)
}

/// Returns the address of a site's first page.
pub(super) fn path(id: &str) -> String {
    format!("/console/sites/{}", utf8_percent_encode(id, PATH_SEGMENT))
}

/// Returns the address of a part of a site: `/console/sites/1/pages/2`.
pub(super) fn path_of(id: &str, part: &str, part_id: &str) -> String {
    format!("{}/{part}/{}", path(id), utf8_percent_encode(part_id, PATH_SEGMENT))
}

/// The refusal of what is not part of this site.
pub(super) fn not_here(detail: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "not_found", "Not found", detail)
}

/// Returns the items of a list's answer.
pub(super) fn items<'a>(list: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    list[name].as_array().into_iter().flatten()
}

/// Returns what a tag says: its tone, its icon and its word.
pub(super) fn tag((tone, icon, text): (&str, &str, &str)) -> Value {
    json!({ "tone": tone, "icon": icon, "text": text })
}
