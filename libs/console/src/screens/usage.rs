//! Usage of the plan's limits, as the overview and the account's page show it.

use serde::Serialize;
use serde_json::Value;

use crate::formatting::numbers;

/// Members of the usage with their labels.
const LIMITS: [(&str, &str); 7] = [
    ("projects", "Projects"),
    ("storageBytes", "Storage"),
    ("events", "Events this month"),
    ("automationRuns", "Automation runs this month"),
    ("webhooks", "Webhooks"),
    ("domains", "Domains"),
    ("subdomains", "Subdomains"),
];

/// Usage of a limit.
#[derive(Debug, Serialize)]
pub(super) struct UsageRow {
    pub(super) label: &'static str,
    pub(super) used: String,
    pub(super) limit: String,
    /// The width of its bar, in percent.
    share: String,
    #[serde(skip)]
    pub(super) percent: f64,
    /// Whether something stops once the limit is reached; every small plan has its one subdomain.
    #[serde(skip)]
    pub(super) stops_something: bool,
}

/// Limits at which something stops.
const STOPPING: [&str; 4] = ["projects", "storageBytes", "events", "automationRuns"];

/// Returns the usage of each limit.
pub(super) fn usage(status: &Value) -> Vec<UsageRow> {
    let row = |(name, label): (&str, &'static str)| {
        let (used, limit) =
            (status["usage"][name]["used"].as_f64()?, status["usage"][name]["limit"].as_f64()?);
        let shown = if name == "storageBytes" { numbers::bytes } else { numbers::count };
        let percent = match limit {
            unlimited if unlimited < 0.0 => 0.0,
            0.0 => 0.0,
            limit => used / limit * 100.0,
        };
        let limit = if limit < 0.0 { "unlimited".to_owned() } else { shown(limit) };
        let share = format!("{:.1}", percent.min(100.0));
        let stops_something = STOPPING.contains(&name);
        Some(UsageRow { label, used: shown(used), limit, share, percent, stops_something })
    };
    LIMITS.into_iter().filter_map(row).collect()
}
