//! The account itself.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::plans::Limits;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;
use web::{Problem, Reply, Resource};

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
    plan: String,
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

async fn read(call: Call<scope::AccountRead>, State(app): State<App>) -> Result<Reply<AccountView>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let account = store::accounts::find_account(&mut conn, call.account_id).await?;
    let account = account.ok_or_else(|| Problem::not_found("account"))?;
    let subdomain =
        store::subdomains::find_subdomain(&mut conn, call.account_id, None).await?.map(|found| found.name);
    let view = AccountView {
        id: account.id,
        name: account.name,
        plan: account.plan.word().to_owned(),
        limits: account.plan.limits(),
        timezone: account.timezone,
        site_url: subdomain.as_deref().map(|name| app.addresses.page(name, domain::pages::INDEX)),
        subdomain,
        claim_deadline: account.claim_deadline.filter(|_| account.claimed_at.is_none()),
        created_at: account.created_at,
    };
    Ok(call.reply(view))
}
