//! What an account has, in one statement: for its status, and for suggestions of what to do next.

mod read;

use chrono::{DateTime, Utc};
use domain::fields::Field;
use uuid::Uuid;

pub use self::read::find_overview;
use crate::usage::Usage;

/// The resources of an account that a caller may see.
#[derive(Debug, Clone, Default)]
pub struct Overview {
    /// The exact counters of the whole account, which the plan limits.
    pub usage: Usage,
    pub pages: PageCounts,
    /// The newest page.
    pub page: Option<PageOverview>,
    pub forms: i64,
    /// The newest form.
    pub form: Option<FormOverview>,
    /// Submissions of the counted forms, of every status.
    pub submissions: i64,
    pub webhooks: WebhookCounts,
    /// The newest active webhook that the caller may change.
    pub webhook: Option<WebhookOverview>,
    /// The newest active webhook that can receive the submissions of one more form: it is not for all forms, has no
    /// field mapping, and its events include new submissions.
    pub linkable_webhook_id: Option<Uuid>,
    /// A webhook that the caller may change and that fails or was deactivated because of it.
    pub troubled_webhook_id: Option<Uuid>,
    pub sites: i64,
    /// The newest analytics site.
    pub site: Option<SiteOverview>,
    pub automations: AutomationCounts,
    /// The newest automation.
    pub automation: Option<AutomationOverview>,
    /// An enabled automation whose last run failed.
    pub failing_automation_id: Option<Uuid>,
    pub subdomains: i64,
    /// The first subdomain, to which pages are published by default.
    pub subdomain: Option<SubdomainOverview>,
    pub domains: DomainCounts,
    /// The oldest custom domain that is not active.
    pub inactive_domain_id: Option<Uuid>,
    pub folders: i64,
    /// The newest folder.
    pub folder_id: Option<Uuid>,
    /// Keys that are not revoked.
    pub keys: i64,
}

/// Pages by their state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageCounts {
    pub total: i64,
    pub published: i64,
}

/// A page without its content.
#[derive(Debug, Clone)]
pub struct PageOverview {
    pub id: Uuid,
    pub folder_id: Option<Uuid>,
    pub subdomain_id: Uuid,
    pub slug: String,
    pub title: String,
    pub is_published: bool,
    pub has_entry_template: bool,
    pub created_at: DateTime<Utc>,
}

/// A form with the fields and settings that decide what a submission must hold.
#[derive(Debug, Clone)]
pub struct FormOverview {
    pub id: Uuid,
    pub folder_id: Option<Uuid>,
    pub name: String,
    pub fields: Vec<Field>,
    pub submissions: i64,
    /// Whether it takes submissions now: neither closed nor full.
    pub is_open: bool,
    /// Whether a submission needs a proof of work.
    pub proof_of_work: bool,
    /// Whether an active webhook receives its submissions.
    pub has_webhook: bool,
    /// Whether a webhook is linked to it, active or not, whatever its events.
    pub has_link: bool,
    /// Whether an enabled automation starts with its submissions.
    pub has_automation: bool,
    pub created_at: DateTime<Utc>,
}

/// Webhooks by their state; a webhook is in one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WebhookCounts {
    /// Active, and nothing has failed since the last success.
    pub active: i64,
    /// Active, but deliveries fail.
    pub failing: i64,
    /// Disabled, by the owner or because deliveries failed for too long.
    pub disabled: i64,
}

/// A webhook.
#[derive(Debug, Clone, Copy)]
pub struct WebhookOverview {
    pub id: Uuid,
    /// Whether anything was sent to it, a test included.
    pub has_deliveries: bool,
}

/// An analytics site.
#[derive(Debug, Clone)]
pub struct SiteOverview {
    pub id: Uuid,
    pub folder_id: Option<Uuid>,
    pub name: String,
    pub subdomain_id: Option<Uuid>,
}

/// Automations by their state; an automation is in one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AutomationCounts {
    /// Enabled, and the last run did not fail.
    pub enabled: i64,
    /// Enabled, and the last run failed.
    pub failing: i64,
    pub disabled: i64,
}

/// An automation.
#[derive(Debug, Clone, Copy)]
pub struct AutomationOverview {
    pub id: Uuid,
    pub folder_id: Option<Uuid>,
    pub is_enabled: bool,
    /// Whether it has run, tests included.
    pub has_run: bool,
}

/// A subdomain.
#[derive(Debug, Clone)]
pub struct SubdomainOverview {
    pub id: Uuid,
    pub name: String,
    /// Whether an analytics site counts its visits.
    pub has_site: bool,
    /// Those of the requested slugs that pages of the subdomain have.
    pub taken_slugs: Vec<String>,
}

/// Custom domains by their state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DomainCounts {
    pub active: i64,
    pub pending: i64,
    pub failed: i64,
}

/// Bounds of an overview.
#[derive(Debug, Clone, Copy, Default)]
pub struct OverviewBounds<'a> {
    /// Counts end here, because to count many rows takes long; `None` counts all.
    pub count_max: Option<i64>,
    /// Slugs to look up on the first subdomain.
    pub slugs: &'a [&'a str],
}
