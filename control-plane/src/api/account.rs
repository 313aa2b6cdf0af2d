//! The account itself.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::plans::{Limits, Plan};
use schemars::JsonSchema;
use serde::Serialize;
use store::accounts::Account;
use uuid::Uuid;
use web::{Reply, Resource};

use crate::App;
use crate::call::{Call, scope};

/// The endpoints.
pub(super) fn resource() -> Resource<App> {
    Resource::new("account").get("/api/account", read, "Plan, limits and address of the account")
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AccountView {
    id: Uuid,
    name: Option<String>,
    plan: Plan,
    /// What the plan allows; -1 is unlimited.
    limits: Limits,
    timezone: String,
    /// The name of the account's first subdomain.
    subdomain: Option<String>,
    /// Where its pages are served.
    site_url: Option<String>,
    /// After this an unclaimed trial is deleted; null once claimed.
    claim_deadline: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

async fn read(call: Call<scope::AccountRead>, State(app): State<App>) -> Reply<AccountView> {
    let view = view(&app, &call.caller.account);
    call.reply(view)
}

fn view(app: &App, account: &Account) -> AccountView {
    AccountView {
        id: account.id,
        name: account.name.clone(),
        plan: account.plan,
        limits: account.plan.limits(),
        timezone: account.timezone.clone(),
        site_url: account.subdomain.as_deref().map(|name| app.addresses.site(name)),
        subdomain: account.subdomain.clone(),
        claim_deadline: account.claim_deadline.filter(|_| account.claimed_at.is_none()),
        created_at: account.created_at,
    }
}
