//! The list of sites, each with its newest deploy and its domains, and the form for a new one.

use axum::extract::State;
use axum::response::Response;
use futures::future::join_all;
use futures::join;
use serde_json::{Value, json};

use super::domains::with_steps;
use super::site::{items, path};
use crate::api_client::operations::{
    DEPLOYS_LIST, DOMAINS_LIST, SUBDOMAINS_CREATE, SUBDOMAINS_LIST, SUBDOMAINS_RENAME,
};
use crate::api_client::{Answer, Call};
use crate::flash::Flash;
use crate::page::{Page, Section, redirect};
use crate::screens::AccountForm;
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Shows the sites.
pub(crate) async fn list(State(console): State<Console>, viewer: Viewer, query: UrlQuery) -> Response {
    respond(&console, &viewer, &query, |page| page).await
}

/// Makes a site.
pub(crate) async fn create(State(console): State<Console>, viewer: Viewer, form: AccountForm) -> Response {
    let body = form.to_json(&console.document, &SUBDOMAINS_CREATE);
    let call = Call::of(&SUBDOMAINS_CREATE).body(body).idempotency_key(form.idempotency_key());
    match console.call(&viewer, call).await {
        Ok(made) => {
            let path = path(made["id"].as_str().unwrap_or_default());
            redirect(&console, &path, Some(Flash::SiteMade))
        }
        Err(refusal) => {
            respond(&console, &viewer, &UrlQuery::default(), |page| page.problem(&refusal).keep(&form)).await
        }
    }
}

/// Renames the first site, the only one that the API can rename.
pub(crate) async fn rename(State(console): State<Console>, viewer: Viewer, form: AccountForm) -> Response {
    let body = form.to_json(&console.document, &SUBDOMAINS_RENAME);
    match console.call(&viewer, Call::of(&SUBDOMAINS_RENAME).body(body)).await {
        Ok(_) => redirect(&console, "/console/sites", Some(Flash::SiteRenamed)),
        Err(refusal) => {
            let keep = |page: Page| {
                page.status(refusal.status()).with("rename_problem", refusal).with("renamed", form.kept())
            };
            respond(&console, &viewer, &UrlQuery::default(), keep).await
        }
    }
}

async fn respond(
    console: &Console,
    viewer: &Viewer,
    query: &UrlQuery,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let list = Call::of(&SUBDOMAINS_LIST).query("limit", "50").optional_query("cursor", query.get("cursor"));
    let (account, list, domains) = join!(
        console.account(viewer),
        console.call(viewer, list),
        console.call(viewer, Call::of(&DOMAINS_LIST).query("limit", "100")),
    );
    let deploys = match &list {
        Ok(list) => {
            join_all(items(list, "subdomains").map(|site| newest_deploy(console, viewer, site))).await
        }
        Err(_) => Vec::new(),
    };
    let refused_deploys = deploys.iter().find_map(|newest| newest.as_ref().err().cloned());
    let sites: Vec<Value> = list
        .iter()
        .flat_map(|list| items(list, "subdomains"))
        .zip(deploys)
        .map(|(site, newest)| {
            let mut site = site.clone();
            let own = domains.iter().flat_map(|list| items(list, "domains"));
            let own = own.filter(|domain| domain["subdomainId"] == site["id"]).cloned();
            site["domains"] = json!(own.map(with_steps).collect::<Vec<_>>());
            site["deploy"] = newest.unwrap_or_default();
            site
        })
        .collect();
    let page = Page::new(Section::Sites, "sites/list.html")
        .main("list", &list)
        .panel("domains", &domains.map(|_| Value::Null))
        .with("deploys_refusal", refused_deploys)
        .with("is_first_page", query.get("cursor").is_none())
        .with("sites", sites);
    add(page).respond(console, viewer, &account)
}

/// Returns the newest deploy of a site; null for none.
async fn newest_deploy(console: &Console, viewer: &Viewer, site: &Value) -> Answer {
    let id = site["id"].as_str().unwrap_or_default();
    let call = Call::of(&DEPLOYS_LIST).query("subdomainId", id).query("limit", "1");
    let list = console.call(viewer, call).await?;
    Ok(items(&list, "deploys").next().cloned().unwrap_or_default())
}
