//! The account: plan, limits, usage and settings.

mod claim_link;
mod plans;

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::accounts;
use domain::months::{month_after, month_of};
use domain::plans::{Limits, Plan};
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::accounts::{Account, AccountChange};
use web::{Json, Problem, Reply, Usage};

use super::automations::reschedule;
use crate::App;
use crate::call::{Call, scope, usage_of};

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("account")
        .post(
            "/api/account/claim-link",
            claim_link::claim_link,
            "Replace the claim link of a trial, with the trial's own key; the old link stops working",
        )
        .extension()
        .get("/api/account", read, "Get the account's plan, limits and address")
        .put("/api/account", update, "Update the account's settings")
        .get("/api/account/usage", usage, "Get usage and limits")
        .get("/api/account/upgrade", plans::plans, "List plans, prices and the way to upgrade")
        .post("/api/account/upgrade", plans::upgrade, "Change the plan")
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AccountView {
    id: uuid::Uuid,
    /// Display name; null if none is set.
    name: Option<String>,
    /// The owner's e-mail address; null for a trial.
    email: Option<String>,
    /// The plan the account is on.
    plan: Plan,
    /// What the plan allows; -1 is unlimited.
    limits: Limits,
    /// IANA time zone name.
    timezone: String,
    /// Name of the account's first subdomain.
    subdomain: Option<String>,
    /// URL at which the pages of the first subdomain are served.
    site_url: Option<String>,
    /// Whether an owner has signed in and claimed the account.
    claimed: bool,
    /// An unclaimed trial is deleted after this time; null once claimed.
    claim_deadline: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateAccountRequest {
    /// Display name, at most 80 characters; null removes it.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(min = 1, max = accounts::NAME_CHARS_MAX), regex(pattern = r"\S"))]
    name: Option<Option<String>>,
    /// IANA time zone name, such as `Europe/Berlin`.
    #[schemars(extend("format" = "timezone"))]
    timezone: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UsageView {
    /// The plan the account is on.
    plan: Plan,
    /// Whether an owner has signed in and claimed the account.
    claimed: bool,
    /// Features that the plan does not include.
    restrictions: &'static [&'static str],
    /// Current usage; a limit of -1 is unlimited.
    usage: Usage,
    /// What the plan allows; -1 is unlimited.
    limits: Limits,
    /// Start of the month in which events and automation runs are counted (UTC).
    month_start: DateTime<Utc>,
    /// End of that month, exclusive; the counters then start at 0.
    month_end: DateTime<Utc>,
}

async fn read(call: Call<scope::AccountRead>, State(app): State<App>) -> Reply<AccountView> {
    let view = view(&app, &call.caller.account);
    call.reply(view)
}

async fn update(
    call: Call<scope::AccountUpdate>,
    State(app): State<App>,
    Json(request): Json<UpdateAccountRequest>,
) -> Result<Reply<AccountView>, Problem> {
    let name = request.name.as_ref().and_then(Option::as_deref);
    let errors = accounts::check(name, request.timezone.as_deref());
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    call.check_whole_account(Resource::Account)?;
    let name = request.name.map(|name| name.map(|name| name.trim().to_owned()));
    let change = AccountChange { name, timezone: request.timezone };
    let mut tx = store::begin(&app.db).await?;
    store::accounts::update_account(&mut tx, call.account_id, &change).await?;
    if let Some(zone) = &change.timezone {
        reschedule(&mut tx, call.account_id, zone, call.now).await?;
    }
    let account = store::accounts::find_account(&mut tx, call.account_id).await?;
    let account = account.ok_or_else(|| Problem::not_found("account"))?;
    call.commit(&app, tx, vec![]).await?;
    app.credentials.invalidate_account(call.account_id);
    let view = view(&app, &account);
    Ok(call.with_account(account).reply(view))
}

async fn usage(call: Call<scope::AccountRead>, State(app): State<App>) -> Result<Reply<UsageView>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let used = store::usage::find_usage(&mut conn, call.account_id).await?;
    let used = used.ok_or_else(|| Problem::not_found("account"))?;
    let months = store::monthly_usage::find_monthly_usage(&mut conn, call.account_id, call.now).await?;
    let plan = call.plan();
    let month = month_of(call.now);
    let midnight = |day: chrono::NaiveDate| day.and_time(chrono::NaiveTime::MIN).and_utc();
    let view = UsageView {
        plan,
        claimed: call.caller.account.claimed_at.is_some(),
        restrictions: plan.restrictions(),
        usage: usage_of(plan, &used, &months),
        limits: plan.limits(),
        month_start: midnight(month),
        month_end: midnight(month_after(month)),
    };
    Ok(call.reply(view))
}

fn view(app: &App, account: &Account) -> AccountView {
    AccountView {
        id: account.id,
        name: account.name.clone(),
        email: account.email.clone(),
        plan: account.plan,
        limits: account.plan.limits(),
        timezone: account.timezone.clone(),
        site_url: account.subdomain.as_deref().map(|name| app.addresses.site(name)),
        subdomain: account.subdomain.clone(),
        claimed: account.claimed_at.is_some(),
        claim_deadline: account.claim_deadline.filter(|_| account.claimed_at.is_none()),
        created_at: account.created_at,
    }
}
