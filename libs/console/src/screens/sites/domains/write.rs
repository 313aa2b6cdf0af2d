//! Adds, checks and removes custom domains.

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use super::list::respond;
use crate::api_client::operations::{DOMAINS_CHECK, DOMAINS_CREATE, DOMAINS_DELETE};
use crate::api_client::{Answer, Call};
use crate::flash::Flash;
use crate::form_submission::FormSubmission;
use crate::page::{Page, redirect};
use crate::screens::sites::site;
use crate::screens::{PathParameters, require_same_account};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Adds a domain to a site.
pub(crate) async fn create(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: FormSubmission,
) -> Response {
    if let Err(refused) = require_same_account(&console, &viewer, &form).await {
        return *refused;
    }
    let site_id = path.get("id");
    let body = json!({ "domain": form.get("domain").unwrap_or_default().trim(), "subdomainId": site_id });
    let call = Call::of(&DOMAINS_CREATE).body(body).idempotency_key(form.idempotency_key());
    let answer = console.call(&viewer, call).await;
    after(&console, &viewer, site_id, &form, answer, Flash::DomainAdded).await
}

/// Looks the records of a domain up now.
pub(crate) async fn check(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: FormSubmission,
) -> Response {
    if let Err(refused) = require_same_account(&console, &viewer, &form).await {
        return *refused;
    }
    let call = Call::of(&DOMAINS_CHECK).path("id", path.get("domain"));
    let answer = console.call(&viewer, call.idempotency_key(form.idempotency_key())).await;
    after(&console, &viewer, path.get("id"), &form, answer, Flash::DomainChecked).await
}

/// Removes a domain.
pub(crate) async fn remove(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: FormSubmission,
) -> Response {
    if let Err(refused) = require_same_account(&console, &viewer, &form).await {
        return *refused;
    }
    let answer = console.call(&viewer, Call::of(&DOMAINS_DELETE).path("id", path.get("domain"))).await;
    after(&console, &viewer, path.get("id"), &form, answer, Flash::DomainRemoved).await
}

async fn after(
    console: &Console,
    viewer: &Viewer,
    site_id: &str,
    form: &FormSubmission,
    answer: Answer,
    flash: Flash,
) -> Response {
    match answer {
        Ok(_) => redirect(console, &format!("{}/domains", site::path(site_id)), Some(flash)),
        Err(refusal) => {
            let keep =
                |page: Page| page.status(refusal.status()).with("problem", refusal).with("kept", form.kept());
            respond(console, viewer, site_id, &UrlQuery::default(), keep).await
        }
    }
}
