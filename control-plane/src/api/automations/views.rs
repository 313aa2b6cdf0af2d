//! Automations in responses.

use automation::definition::{Concurrency, Step, Trigger};
use chrono::{DateTime, Utc};
use domain::automations::trigger_path;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use store::Conn;
use store::automations::{Automation, find_automation};
use uuid::Uuid;
use web::Problem;

use super::permissions::hide_last_errors;
use crate::App;
use crate::call::Call;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AutomationView {
    pub(super) id: Uuid,
    /// Display name.
    name: String,
    /// Last part of `triggerUrl`.
    slug: String,
    /// Note for the owner; null for none.
    description: Option<String>,
    /// Whether it runs. It is disabled by itself after 100 failed runs without a success between them.
    enabled: bool,
    folder_id: Option<Uuid>,
    /// What starts a run.
    #[schemars(with = "Trigger")]
    trigger: Value,
    /// Steps of the run, in order.
    #[schemars(with = "Vec<Step>")]
    steps: Value,
    /// How many runs may be active at once; null for no limit.
    #[schemars(with = "Option<Concurrency>")]
    concurrency: Value,
    /// Names of the variables. Their values are never returned.
    env_names: Vec<String>,
    /// URL that starts a run; it needs no key. Null without an http trigger.
    trigger_url: Option<String>,
    /// When the schedule starts the next run; null without a schedule, or while it is disabled.
    next_run_at: Option<DateTime<Utc>>,
    /// Figures of its runs, without test runs.
    statistics: AutomationStatistics,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AutomationStatistics {
    /// Number of ended runs.
    runs: i64,
    /// Number of failed runs.
    failures: i64,
    /// Failed runs since the last success.
    consecutive_failures: i32,
    /// When the last run ended; null for never.
    last_run_at: Option<DateTime<Utc>>,
    /// Why the last failed run failed; null for none, and for keys that may not see this run.
    last_error: Option<String>,
    /// Median duration of the last 1000 runs in milliseconds; null without runs, and in a list.
    p50_ms: Option<f64>,
    /// Their 95th percentile; null without runs, and in a list.
    p95_ms: Option<f64>,
}

/// Returns an automation of the account.
pub(super) async fn find<S>(call: &Call<S>, conn: &mut Conn, id: Uuid) -> Result<Automation, Problem> {
    let automation = find_automation(conn, call.account_id, id).await?;
    automation.ok_or_else(|| Problem::not_found("automation"))
}

/// As [`find`], for a response: without what the caller may not read.
pub(super) async fn find_readable<S>(
    call: &Call<S>,
    conn: &mut Conn,
    id: Uuid,
) -> Result<Automation, Problem> {
    let mut automation = find(call, conn, id).await?;
    hide_last_errors(call, conn, std::slice::from_mut(&mut automation)).await?;
    Ok(automation)
}

/// An automation as its owner sees it; `durations` are median and 95th percentile.
pub(super) fn view(app: &App, automation: Automation, durations: Option<(f64, f64)>) -> AutomationView {
    let mut definition: Map<String, Value> = serde_json::from_str(&automation.definition).unwrap_or_default();
    let mut member = |name: &str| definition.remove(name).unwrap_or_default();
    let (trigger, steps, concurrency) = (member("trigger"), member("steps"), member("concurrency"));
    let is_http = trigger.get("type").is_some_and(|kind| kind == "http");
    let path = || trigger_path(automation.id, &automation.slug);
    let statistics = automation.statistics;
    AutomationView {
        trigger_url: is_http.then(|| format!("{}{}", app.addresses.base(), path())),
        id: automation.id,
        name: automation.name,
        slug: automation.slug,
        description: automation.description,
        enabled: automation.is_enabled,
        folder_id: automation.folder_id,
        trigger,
        steps,
        concurrency,
        env_names: automation.env_names,
        next_run_at: automation.next_fire_at,
        statistics: AutomationStatistics {
            runs: statistics.runs,
            failures: statistics.failures,
            consecutive_failures: statistics.consecutive_failures,
            last_run_at: statistics.last_run_at,
            last_error: statistics.last_error,
            p50_ms: durations.map(|(p50, _)| p50),
            p95_ms: durations.map(|(_, p95)| p95),
        },
        created_at: automation.created_at,
        updated_at: automation.updated_at,
    }
}
