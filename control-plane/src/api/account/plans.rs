//! Plans and upgrades. After a change to a smaller plan, resources over its limits stay; only creating more is
//! refused.

use axum::extract::State;
use domain::plans::{Limits, Plan};
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::{Code, DoneOrAccepted, OptionalJson, Problem, Reply};

use crate::App;
use crate::call::{Call, scope};
use crate::config::UpgradeMode;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlanListResponse {
    /// The plan the account is on.
    current_plan: Plan,
    /// `instant`: POST to this path changes the plan at once. `manual`: the operator changes it.
    mode: UpgradeMode,
    /// All plans, from the smallest to the largest.
    plans: Vec<PlanOffer>,
    /// How to change the plan, step by step.
    steps: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlanOffer {
    /// Name of the plan.
    plan: Plan,
    /// Price in US dollars per month.
    price_per_month: u32,
    /// What the plan allows; -1 is unlimited.
    limits: Limits,
    /// Features that the plan does not include.
    restrictions: &'static [&'static str],
    /// Whether the account is on this plan.
    current: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpgradeAccountRequest {
    /// Default: the next larger plan.
    plan: Option<Plan>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UpgradeResponse {
    /// The plan the account is on now.
    plan: Plan,
    /// The plan that was requested.
    requested_plan: Plan,
    /// `active`, or `pending` until the operator has changed the plan.
    status: &'static str,
    /// Steps that remain, for a pending change.
    steps: Vec<String>,
}

pub(super) async fn plans(
    call: Call<scope::AccountRead>,
    State(app): State<App>,
) -> Result<Reply<PlanListResponse>, Problem> {
    let current = call.plan();
    let offer = |plan: Plan| PlanOffer {
        plan,
        price_per_month: plan.price(),
        limits: plan.limits(),
        restrictions: plan.restrictions(),
        current: plan == current,
    };
    let steps = match app.upgrade.mode {
        UpgradeMode::Instant => vec!["POST /api/account/upgrade with {\"plan\": \"pro\"}".to_owned()],
        UpgradeMode::Manual => app.upgrade.steps.clone(),
    };
    let plans = Plan::ALL.map(offer).into();
    Ok(call.reply(PlanListResponse { current_plan: current, mode: app.upgrade.mode, plans, steps }))
}

pub(super) async fn upgrade(
    call: Call<scope::AccountUpdate>,
    State(app): State<App>,
    OptionalJson(request): OptionalJson<UpgradeAccountRequest>,
) -> Result<DoneOrAccepted<UpgradeResponse>, Problem> {
    call.require_fresh_sign_in(&app)?;
    call.check_whole_account(Resource::Account)?;
    let current = call.plan();
    let requested = request.and_then(|request| request.plan).or(current.next_larger());
    let requested_plan = requested
        .ok_or_else(|| Problem::new(Code::Conflict, "this account is already on the largest plan"))?;
    if app.upgrade.mode == UpgradeMode::Manual && requested_plan != current {
        let steps = app.upgrade.steps.clone();
        let pending = UpgradeResponse { plan: current, requested_plan, status: "pending", steps };
        return Ok(DoneOrAccepted::Accepted(call.reply(pending)));
    }
    let mut tx = store::begin(&app.db).await?;
    store::accounts::update_plan(&mut tx, call.account_id, requested_plan).await?;
    let changes = store::accounts::list_cached_items(&mut tx, call.account_id).await?;
    let account = store::accounts::find_account(&mut tx, call.account_id).await?;
    let account = account.ok_or_else(|| Problem::not_found("account"))?;
    call.commit(&app, tx, changes).await?;
    app.credentials.invalidate_account(call.account_id);
    let done = UpgradeResponse { plan: requested_plan, requested_plan, status: "active", steps: vec![] };
    Ok(DoneOrAccepted::Done(call.with_account(account).reply(done)))
}
