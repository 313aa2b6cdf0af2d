//! Signals between services over Redis pub/sub, which may be lost.
//!
//! Nothing depends on their arrival: cache entries expire after a minute, and the outbox is polled.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A message on the bus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "signal", rename_all = "snake_case")]
pub enum Signal {
    /// A cached resource has changed.
    Changed(Change),
    /// The outbox has new rows, so the relay polls at once.
    OutboxFilled,
    /// Webhook deliveries are due, so job-runners poll at once.
    DeliveriesDue {
        /// Webhooks with due deliveries; empty if unknown.
        #[serde(default)]
        webhook_ids: Vec<Uuid>,
    },
    /// Submissions are to start automations, so job-runners look for them at once.
    TriggersDue,
    /// Runs of automations are due, so job-runners claim them at once.
    RunsDue {
        /// Accounts with due runs.
        account_ids: Vec<Uuid>,
    },
    /// Runs have an answer or have ended, so those who wait for them look at once.
    RunsAnswered {
        /// The runs.
        run_ids: Vec<Uuid>,
    },
}

/// A signal, with the time at which it was written to the outbox. Readers of a [`Signal`] ignore the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatedSignal {
    #[serde(flatten)]
    pub signal: Signal,
    /// `None` if the sender named no time: signals that are sent without a row, and those of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_at: Option<DateTime<Utc>>,
}

/// The changed resource, by the keys of the caches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// A page was created, edited, published or unpublished.
    Page {
        subdomain_id: Uuid,
        slug: String,
        /// The path of the deployed file that the page shows, at which it answers; null for pages that the API made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// A host was assigned to a site or removed, a preview began or ended, or its account was claimed, suspended or resumed.
    Host {
        /// A subdomain or the label of a preview without the sites domain, or a custom domain, which contains a dot.
        host: String,
    },
    /// A certificate was issued, renewed or deleted.
    Certificate {
        /// Host in lower case and punycode, or `*.` and the sites domain.
        name: String,
    },
    /// A subdomain was deleted with all its pages; caches must remove all of them.
    SubdomainGone { subdomain_id: Uuid },
    /// A form was created, edited or deleted, or its account was suspended, resumed or put on another plan.
    Form { form_id: Uuid },
    /// An asset was uploaded or deleted.
    Asset { asset_id: Uuid },
    /// A deploy was published on a subdomain or rolled back: any of its files and pages may have changed.
    Site { subdomain_id: Uuid },
    /// An account was suspended, resumed or deleted: its files must be looked up again before they are served.
    AccountFiles { account_id: Uuid },
    /// An analytics site was created, edited or deleted, or its account was suspended or resumed.
    AnalyticsSite {
        /// Public token of the site.
        site_token: String,
        /// The subdomain with automatic page view tracking, if any.
        #[serde(default)]
        subdomain_id: Option<Uuid>,
    },
}
