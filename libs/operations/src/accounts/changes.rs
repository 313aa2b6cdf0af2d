//! Changes of an account. Each returns a sentence for the operator.

use anyhow::{Result, bail, ensure};
use domain::plans::Plan;
use serde_json::json;
use store::{Conn, accounts};
use uuid::Uuid;

use crate::audit::Operator;

/// Puts an account on a plan: `free`, `pro` or `scale`. Existing data over a smaller plan's limits is kept.
pub async fn change_plan(
    conn: &mut Conn,
    operator: &Operator,
    account_id: Uuid,
    plan: &str,
) -> Result<String> {
    let plan = parse_plan(plan)?;
    let Some(account) = accounts::find_account(conn, account_id).await? else { bail!(missing(account_id)) };
    ensure!(accounts::update_plan(conn, account_id, plan).await?, missing(account_id));
    accounts::publish_changes(conn, account_id, operator.now).await?;
    let detail = json!({ "plan": plan.as_str(), "before": account.plan.as_str() });
    operator.record(conn, "admin plan", Some(&account_id.to_string()), detail).await?;
    Ok(format!("{account_id} is on the {} plan.", plan.as_str()))
}

/// Suspends an account: sites, forms and short URLs return 451, keys 403, and visits aren't counted.
pub async fn suspend(
    conn: &mut Conn,
    operator: &Operator,
    account_id: Uuid,
    reason: Option<&str>,
) -> Result<String> {
    ensure!(accounts::suspend(conn, account_id, reason, operator.now).await?, missing(account_id));
    let detail = json!({ "reason": reason });
    operator.record(conn, "admin suspend", Some(&account_id.to_string()), detail).await?;
    Ok(format!(
        "{account_id} is suspended: its sites return 451 and its keys 403 within a second.\n\
         To end the suspension: admin resume {account_id}"
    ))
}

/// Ends an account's suspension.
pub async fn resume(conn: &mut Conn, operator: &Operator, account_id: Uuid) -> Result<String> {
    ensure!(accounts::resume(conn, account_id, operator.now).await?, missing(account_id));
    operator.record(conn, "admin resume", Some(&account_id.to_string()), json!({})).await?;
    Ok(format!("{account_id} is no longer suspended; it works again within a second."))
}

/// Parses a plan.
pub(super) fn parse_plan(text: &str) -> Result<Plan> {
    let Some(plan) = Plan::parse(text) else { bail!("plans are: free, pro, scale") };
    Ok(plan)
}

fn missing(account_id: Uuid) -> String {
    format!("there is no account {account_id}")
}
