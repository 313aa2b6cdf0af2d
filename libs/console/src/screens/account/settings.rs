//! Changes the account's name, its time zone and its plan.

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use super::show;
use crate::api_client::operations::{ACCOUNT_UPDATE, ACCOUNT_UPGRADE};
use crate::api_client::{Call, Refusal};
use crate::flash::Flash;
use crate::page::{Page, redirect};
use crate::screens::AccountForm;
use crate::state::Console;
use crate::viewer::Viewer;

/// The page that a change leads to.
const PATH: &str = "/console/account";

/// Changes the name and the time zone.
pub(crate) async fn update(State(console): State<Console>, viewer: Viewer, form: AccountForm) -> Response {
    let body = form.to_json(&console.document, &ACCOUNT_UPDATE);
    match console.call(&viewer, Call::of(&ACCOUNT_UPDATE).body(body)).await {
        Ok(_) => redirect(&console, PATH, Some(Flash::AccountSaved)),
        Err(refusal) => {
            show::respond(&console, &viewer, None, |page| page.problem(&refusal).keep(&form)).await
        }
    }
}

/// Changes the plan. Where an operator does that, the page says how to ask for it.
pub(crate) async fn change_plan(
    State(console): State<Console>,
    viewer: Viewer,
    form: AccountForm,
) -> Response {
    let plan = form.get("plan").unwrap_or_default();
    let call = Call::of(&ACCOUNT_UPGRADE).body(json!({ "plan": plan }));
    match console.call(&viewer, call.idempotency_key(form.idempotency_key())).await {
        Ok(answer) if answer["status"] == "pending" => {
            show::respond(&console, &viewer, None, |page| page.with("pending", answer)).await
        }
        Ok(_) => redirect(&console, PATH, Some(Flash::PlanChanged)),
        Err(refusal) => {
            show::respond(&console, &viewer, None, |page| with_plan_problem(page, &refusal)).await
        }
    }
}

fn with_plan_problem(page: Page, refusal: &Refusal) -> Page {
    page.status(refusal.status()).with("plan_problem", refusal)
}
