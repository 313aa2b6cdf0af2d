//! A version of a page: how it differs from the current one, and its restoration.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use serde_json::{Value, json};

use super::editor::{find, respond};
use crate::api_client::Call;
use crate::api_client::operations::{VERSIONS_READ, VERSIONS_ROLLBACK};
use crate::flash::Flash;
use crate::formatting::line_diff;
use crate::page::redirect;
use crate::screens::sites::site::{self, path_of};
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// The texts of a page, with their names.
const TEXTS: [(&str, &str); 4] =
    [("title", "Title"), ("html", "HTML"), ("css", "Style sheet"), ("entryTemplate", "Template of entries")];

/// Shows how a version differs from the current one.
pub(crate) async fn compare_version(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
) -> Response {
    let (site_id, id, version_id) = (path.get("id"), path.get("page"), path.get("version"));
    let read = Call::of(&VERSIONS_READ).path("id", id).path("versionId", version_id);
    let (account, site, page, version) = join!(
        console.account(&viewer),
        site::find(&console, &viewer, site_id),
        find(&console, &viewer, site_id, id),
        console.call(&viewer, read),
    );
    let differences = match (&version, &page) {
        (Ok(version), Ok(page)) => differences(version, page),
        _ => Vec::new(),
    };
    site::page("sites/version.html", "pages", &site)
        .main("page", &page)
        .main("version", &version)
        .with("differences", differences)
        .respond(&console, &viewer, &account)
}

/// Returns the texts that differ.
fn differences(version: &Value, page: &Value) -> Vec<Value> {
    let text = |page: &Value, name: &str| page[name].as_str().unwrap_or_default().to_owned();
    let compared = TEXTS.map(|(name, label)| {
        let diff = line_diff::compare(&text(version, name), &text(page, name));
        (label, diff)
    });
    let changed = compared.into_iter().filter(|(_, diff)| !diff.groups.is_empty());
    changed.map(|(label, diff)| json!({ "label": label, "diff": diff })).collect()
}

/// Makes a version the current one again.
pub(crate) async fn restore_version(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let (site_id, id) = (path.get("id"), path.get("page"));
    let body = json!({ "versionId": path.get("version") });
    let call = Call::of(&VERSIONS_ROLLBACK).path("id", id).body(body);
    match console.call(&viewer, call.idempotency_key(form.idempotency_key())).await {
        Ok(_) => redirect(&console, &path_of(site_id, "pages", id), Some(Flash::VersionRestored)),
        Err(refusal) => {
            respond(&console, &viewer, (site_id, id), &UrlQuery::default(), |page| page.problem(&refusal))
                .await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_texts_that_differ_are_shown() {
        let old = json!({ "title": "T", "html": "<p>1\n", "css": null, "entryTemplate": "{{a}}" });
        let new = json!({ "title": "T", "html": "<p>2\n", "css": "p{}", "entryTemplate": "{{a}}" });
        let differences = differences(&old, &new);
        let labels: Vec<_> = differences.iter().map(|one| one["label"].as_str().unwrap()).collect();
        assert_eq!(labels, ["HTML", "Style sheet"]);
        assert_eq!(differences[1]["diff"]["added"], 1);
    }
}
