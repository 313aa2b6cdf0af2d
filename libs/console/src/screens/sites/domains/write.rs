//! Adds, changes, checks and removes custom domains.

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::list::respond;
use crate::api_client::operations::{DOMAINS_CHECK, DOMAINS_CREATE, DOMAINS_DELETE, DOMAINS_UPDATE};
use crate::api_client::{Answer, Call};
use crate::flash::Flash;
use crate::form_submission::FormSubmission;
use crate::page::{Page, redirect};
use crate::screens::sites::site;
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

const SECONDS_PER_DAY: i64 = 24 * 60 * 60;

/// Adds a domain to a site.
pub(crate) async fn create(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let site_id = path.get("id");
    let body = json!({ "domain": form.get("domain").unwrap_or_default().trim(), "subdomainId": site_id });
    let call = Call::of(&DOMAINS_CREATE).body(body).idempotency_key(form.idempotency_key());
    let answer = console.call(&viewer, call).await;
    after(&console, &viewer, site_id, &form, answer, Flash::DomainAdded).await
}

/// Changes what a domain serves, and how.
pub(crate) async fn update(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let (site_id, id) = (path.get("id"), path.get("domain"));
    match console.call(&viewer, Call::of(&DOMAINS_UPDATE).path("id", id).body(change_of(&form))).await {
        // The domain may stand under another site now.
        Ok(domain) => {
            let site_id = domain["subdomainId"].as_str().unwrap_or(site_id);
            redirect(&console, &format!("{}/domains", site::path(site_id)), Some(Flash::DomainSaved))
        }
        Err(refusal) => {
            let keep = |page: Page| page.problem(&refusal).with("changed", id);
            respond(&console, &viewer, site_id, &UrlQuery::default(), keep).await
        }
    }
}

/// Returns the body of a change: a field that the form leaves empty removes what was set.
fn change_of(form: &FormSubmission) -> Value {
    let max_age = form.get("hsts_days").map(|days| {
        let seconds = days.trim().parse::<i64>().ok().and_then(|days| days.checked_mul(SECONDS_PER_DAY));
        seconds.map_or_else(|| json!(days), |seconds| json!(seconds))
    });
    let includes_subdomains = form.get("hsts_subdomains").is_some();
    let hsts = max_age.map(|max_age| json!({ "maxAge": max_age, "includeSubDomains": includes_subdomains }));
    let mut body = json!({ "redirectTo": form.get("redirectTo"), "hsts": hsts });
    if let Some(subdomain) = form.get("subdomainId") {
        body["subdomainId"] = json!(subdomain);
    }
    body
}

/// Looks the records of a domain up now.
pub(crate) async fn check(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let call = Call::of(&DOMAINS_CHECK).path("id", path.get("domain"));
    let answer = console.call(&viewer, call.idempotency_key(form.idempotency_key())).await;
    after(&console, &viewer, path.get("id"), &form, answer, Flash::DomainChecked).await
}

/// Removes a domain.
pub(crate) async fn remove(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
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
            respond(console, viewer, site_id, &UrlQuery::default(), |page| page.problem(&refusal).keep(form))
                .await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_empty_is_removed() {
        let change = |body: &str| change_of(&FormSubmission::parse(body));
        assert_eq!(change("redirectTo=&hsts_days="), json!({ "redirectTo": null, "hsts": null }));
        let full = change("redirectTo=d&hsts_days=+30&hsts_subdomains=on&subdomainId=s");
        let hsts = json!({ "maxAge": 2_592_000, "includeSubDomains": true });
        assert_eq!(full, json!({ "redirectTo": "d", "hsts": hsts, "subdomainId": "s" }));
        assert_eq!(change("hsts_days=month")["hsts"]["maxAge"], "month", "the API names the field");
    }
}
