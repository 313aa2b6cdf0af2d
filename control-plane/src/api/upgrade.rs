//! Plans and how to get another one. What is over a smaller plan's limits stays; only creating is refused.

use axum::extract::State;
use domain::plans::{Limits, Plan};
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::{Code, DoneOrBegun, OptionalJson, Problem, Reply};

use crate::App;
use crate::call::{Call, scope};
use crate::config::UpgradeMode;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Plans {
    current_plan: Plan,
    /// `instant`: POST to this path changes the plan. `manual`: the operator does.
    mode: UpgradeMode,
    plans: Vec<Offer>,
    /// What to do.
    steps: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Offer {
    plan: Plan,
    /// US dollars a month.
    price_per_month: u32,
    /// -1 is unlimited.
    limits: Limits,
    /// Features it leaves out.
    restrictions: &'static [&'static str],
    current: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedPlan {
    /// The next larger one unless told otherwise.
    plan: Option<Plan>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Upgraded {
    /// The plan the account is on now.
    plan: Plan,
    requested_plan: Plan,
    /// `active`, or `pending` until the operator has changed the plan.
    status: &'static str,
    /// What is left to do.
    steps: Vec<String>,
}

pub(super) async fn plans(
    call: Call<scope::AccountRead>,
    State(app): State<App>,
) -> Result<Reply<Plans>, Problem> {
    let current = call.plan();
    let offer = |plan: Plan| Offer {
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
    Ok(call.reply(Plans { current_plan: current, mode: app.upgrade.mode, plans, steps }))
}

pub(super) async fn upgrade(
    call: Call<scope::AccountUpdate>,
    State(app): State<App>,
    OptionalJson(wanted): OptionalJson<WantedPlan>,
) -> Result<DoneOrBegun<Upgraded>, Problem> {
    call.check_whole_account(Resource::Account)?;
    let current = call.plan();
    let wanted = wanted.and_then(|wanted| wanted.plan).or(current.next_larger());
    let requested_plan =
        wanted.ok_or_else(|| Problem::new(Code::Conflict, "this account is on the largest plan already"))?;
    if app.upgrade.mode == UpgradeMode::Manual && requested_plan != current {
        let steps = app.upgrade.steps.clone();
        let pending = Upgraded { plan: current, requested_plan, status: "pending", steps };
        return Ok(DoneOrBegun::Begun(call.reply(pending)));
    }
    let mut tx = store::begin(&app.db).await?;
    store::accounts::update_plan(&mut tx, call.account_id, requested_plan).await?;
    let changes = store::accounts::changes_of(&mut tx, call.account_id).await?;
    app.commit(tx, changes).await?;
    app.credentials.invalidate_account(call.account_id);
    let done = Upgraded { plan: requested_plan, requested_plan, status: "active", steps: vec![] };
    Ok(DoneOrBegun::Done(call.reply(done)))
}
