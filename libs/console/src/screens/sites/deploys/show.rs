//! A deploy: its state, and what publishing it would do.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use serde_json::{Map, Value, json};

use super::list::with_state;
use crate::api_client::operations::{DEPLOYS_PROCESS, DEPLOYS_READ};
use crate::api_client::{Answer, Call};
use crate::form_submission::FormSubmission;
use crate::page::Page;
use crate::screens::sites::site;
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::viewer::Viewer;

/// Shows a deploy.
pub(crate) async fn show(State(console): State<Console>, viewer: Viewer, path: PathParameters) -> Response {
    respond(&console, &viewer, (path.get("id"), path.get("deploy")), |page| page).await
}

/// Shows what publishing a deploy would do. It changes nothing, but the API refuses a page's link to do it.
pub(crate) async fn plan(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    respond_with_plan(&console, &viewer, (path.get("id"), path.get("deploy")), &form).await
}

/// Shows a deploy and what publishing it would do.
pub(super) async fn respond_with_plan(
    console: &Console,
    viewer: &Viewer,
    (site_id, id): (&str, &str),
    form: &FormSubmission,
) -> Response {
    let mut body = process_body(site_id, form);
    body.insert("dryRun".to_owned(), json!(true));
    let call = Call::of(&DEPLOYS_PROCESS).path("id", id).body(Value::Object(body));
    let planned = console.call(viewer, call).await;
    let add = |page: Page| match planned {
        Ok(plan) => page.with("plan", plan).keep(form),
        Err(refusal) => page.problem(&refusal).keep(form),
    };
    respond(console, viewer, (site_id, id), add).await
}

/// Returns how a deploy is processed: for this site, with the posted folder and kind.
pub(super) fn process_body(site_id: &str, form: &FormSubmission) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("subdomainId".to_owned(), json!(site_id));
    if let Some(root) = form.get("root") {
        body.insert("root".to_owned(), json!(root));
    }
    if form.get("spa").is_some() {
        body.insert("spa".to_owned(), json!(true));
    }
    body
}

/// Shows a deploy with additions.
pub(super) async fn respond(
    console: &Console,
    viewer: &Viewer,
    (site_id, id): (&str, &str),
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let (account, site, deploy) = join!(
        console.account(viewer),
        site::find(console, viewer, site_id),
        console.call(viewer, Call::of(&DEPLOYS_READ).path("id", id)),
    );
    let deploy: Answer = deploy.and_then(|deploy| {
        let is_here = deploy["subdomainId"].is_null() || deploy["subdomainId"] == site_id;
        let detail = "This site has no such deploy. It may belong to another site of the account.";
        if is_here { Ok(with_state(deploy)) } else { Err(site::not_here(detail)) }
    });
    let page = site::page("sites/deploy.html", "deploys", &site).main("deploy", &deploy);
    add(page).respond(console, viewer, &account)
}
