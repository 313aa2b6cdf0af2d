//! Plan and usage of the account, which responses and problems carry as `_meta`.

use schemars::JsonSchema;
use serde::Serialize;

/// Plan and usage, on every authenticated response. Usage may be one second old.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// `free`, `pro` or `scale`.
    pub plan: &'static str,
    /// Whether a signed-in user has claimed the account.
    pub claimed: bool,
    /// Usage of the plan's limits.
    pub usage: Usage,
    /// Features that the plan does not include.
    pub restrictions: &'static [&'static str],
    /// Request id, also in the `X-Request-Id` header.
    pub request_id: String,
}

/// Usage of the plan's limits.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Forms, pages, analytics sites and automations together.
    pub projects: UsageCounter,
    /// Number of webhooks.
    pub webhooks: UsageCounter,
    /// Number of custom domains.
    pub domains: UsageCounter,
    /// Number of subdomains.
    pub subdomains: UsageCounter,
    /// Stored bytes.
    pub storage_bytes: UsageCounter,
    /// Analytics events of this calendar month (UTC).
    pub events: UsageCounter,
    /// Automation runs of this calendar month (UTC).
    pub automation_runs: UsageCounter,
}

/// A counter and its limit.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct UsageCounter {
    /// Current usage.
    pub used: i64,
    /// Limit of the plan; -1 for unlimited.
    pub limit: i64,
}
