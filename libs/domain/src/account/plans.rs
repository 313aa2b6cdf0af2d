//! The plans and their limits. All numbers are those of the specification's limits table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of every unlimited limit.
pub const UNLIMITED: i64 = -1;

/// A billing plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Plan {
    /// The free plan; trials are on it.
    Free,
    /// $29 a month.
    Pro,
    /// $99 a month.
    Scale,
}

/// The limits of a plan; [`UNLIMITED`] where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PlanLimits")]
pub struct Limits {
    /// Forms, pages, analytics sites and automations together.
    pub projects: i64,
    /// Stored submissions of one form.
    pub submissions_per_form: i64,
    /// Webhooks.
    pub webhooks: i64,
    #[serde(rename = "customDomains")]
    /// Custom domains.
    pub custom_domains: i64,
    /// Subdomains.
    pub subdomains: i64,
    /// Stored bytes of assets, deployed assets and submitted files together.
    #[serde(rename = "storageBytes")]
    pub storage_bytes: i64,
    /// Bytes of one asset.
    #[serde(rename = "assetSizeLimit")]
    pub asset_size_limit: i64,
    /// Analytics events of a calendar month (UTC).
    #[serde(rename = "eventsPerMonth")]
    pub events_per_month: i64,
    /// Automation runs of a calendar month (UTC).
    #[serde(rename = "automationRunsPerMonth")]
    pub automation_runs_per_month: i64,
    /// Steps of one automation.
    #[serde(rename = "automationMaxSteps")]
    pub automation_max_steps: i64,
    /// `fetch` steps of one automation.
    #[serde(rename = "automationMaxFetchSteps")]
    pub automation_max_fetch_steps: i64,
    /// Variables in one automation's `env`.
    #[serde(rename = "automationMaxEnvVars")]
    pub automation_max_env_vars: i64,
}

const MB: i64 = 1024 * 1024;

impl Plan {
    /// Every plan, cheapest first.
    pub const ALL: [Self; 3] = [Self::Free, Self::Pro, Self::Scale];

    /// Returns `free`, `pro` or `scale`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Pro => "pro",
            Self::Scale => "scale",
        }
    }

    /// Parses the result of [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plan| plan.as_str() == text)
    }

    /// Returns for how many days the log of changes is kept.
    pub fn activity_days(self) -> i32 {
        match self {
            Self::Free | Self::Pro => 90,
            Self::Scale => 365,
        }
    }

    /// Returns the price in US dollars a month.
    pub fn price(self) -> u32 {
        match self {
            Self::Free => 0,
            Self::Pro => 29,
            Self::Scale => 99,
        }
    }

    /// Returns the next larger plan, if there is one.
    pub fn next_larger(self) -> Option<Self> {
        match self {
            Self::Free => Some(Self::Pro),
            Self::Pro => Some(Self::Scale),
            Self::Scale => None,
        }
    }

    /// Returns the limits of the plan.
    pub fn limits(self) -> Limits {
        match self {
            Self::Free => Limits {
                projects: 10,
                submissions_per_form: 100,
                webhooks: 1,
                custom_domains: 0,
                subdomains: 1,
                storage_bytes: 20 * MB,
                asset_size_limit: 2 * MB,
                events_per_month: 5_000,
                automation_runs_per_month: 500,
                automation_max_steps: 10,
                automation_max_fetch_steps: 2,
                automation_max_env_vars: 3,
            },
            Self::Pro => Limits {
                projects: 100,
                submissions_per_form: UNLIMITED,
                webhooks: UNLIMITED,
                custom_domains: 5,
                subdomains: UNLIMITED,
                storage_bytes: 2_048 * MB,
                asset_size_limit: 20 * MB,
                events_per_month: 500_000,
                automation_runs_per_month: 10_000,
                automation_max_steps: 20,
                automation_max_fetch_steps: 5,
                automation_max_env_vars: 10,
            },
            Self::Scale => Limits {
                projects: UNLIMITED,
                submissions_per_form: UNLIMITED,
                webhooks: UNLIMITED,
                custom_domains: UNLIMITED,
                subdomains: UNLIMITED,
                storage_bytes: UNLIMITED,
                asset_size_limit: 50 * MB,
                events_per_month: UNLIMITED,
                automation_runs_per_month: UNLIMITED,
                automation_max_steps: UNLIMITED,
                automation_max_fetch_steps: UNLIMITED,
                automation_max_env_vars: UNLIMITED,
            },
        }
    }

    /// Returns the features that the plan does not include, by their names in the API.
    pub fn restrictions(self) -> &'static [&'static str] {
        match self {
            Self::Free => &["no_export", "no_upsert"],
            Self::Pro | Self::Scale => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_plan_matches_the_specification() {
        let shown = serde_json::to_value(Plan::Free.limits()).unwrap();
        let expected = serde_json::json!({
            "projects": 10, "submissions_per_form": 100, "webhooks": 1, "customDomains": 0, "subdomains": 1,
            "storageBytes": 20_971_520, "assetSizeLimit": 2_097_152, "eventsPerMonth": 5_000,
            "automationRunsPerMonth": 500, "automationMaxSteps": 10, "automationMaxFetchSteps": 2,
            "automationMaxEnvVars": 3,
        });
        assert_eq!(shown, expected);
        assert_eq!(Plan::Pro.limits().storage_bytes, 2_147_483_648);
    }

    #[test]
    fn a_larger_plan_never_allows_less() {
        let numbers = |plan: Plan| -> Vec<i64> {
            let value = serde_json::to_value(plan.limits()).unwrap();
            let unlimited_is_most = |n: i64| if n == UNLIMITED { i64::MAX } else { n };
            value.as_object().unwrap().values().map(|n| unlimited_is_most(n.as_i64().unwrap())).collect()
        };
        for pair in Plan::ALL.windows(2) {
            assert!(numbers(pair[0]).iter().zip(numbers(pair[1])).all(|(less, more)| *less <= more));
        }
    }
}
