//! The status of an account: its usage, and the newest of what it has, with the first figures. One call shows an agent where it
//! is and what it can do next.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::plans::Plan;
use domain::scopes::{Action, Resource, Scope};
use schemars::JsonSchema;
use serde::Serialize;
use store::Conn;
use store::automations::Automation;
use store::forms::Form;
use store::overview::{Overview, OverviewBounds, find_overview};
use store::pages::{PageFilter, PageSummary};
use uuid::Uuid;
use web::{Problem, Reply, Usage};

use super::analytics::views::{AnalyticsSiteCountsView, with_event_counts};
use super::forms::views::{FormStatus, status_of};
use crate::App;
use crate::call::{Call, scope, usage_of};
use crate::next_steps::{After, SLUGS};

/// How many of the newest resources of a kind are shown.
const NEWEST: usize = 10;

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("status").get(
        "/api/status",
        read,
        "Get an overview of the account: usage, the newest of each kind with first figures, what to do next",
    )
}

/// Counts and lists include only what the key may access.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StatusResponse {
    /// The plan the account is on.
    plan: Plan,
    /// Whether an owner has signed in and claimed the account.
    claimed: bool,
    /// An unclaimed trial is deleted after this time; null once claimed.
    claim_deadline: Option<DateTime<Utc>>,
    /// Current usage of the whole account; a limit of -1 is unlimited.
    usage: Usage,
    /// URL of the account's first site; null if the key may not use it.
    site_url: Option<String>,
    /// Pages; null without the scope `pages:read`.
    pages: Option<PagesStatus>,
    /// Forms; null without the scope `forms:read`.
    forms: Option<FormsStatus>,
    /// Analytics sites; null without the scope `analytics:read`.
    analytics_sites: Option<AnalyticsSitesStatus>,
    /// Automations; null without the scope `automations:read`.
    automations: Option<AutomationsStatus>,
    /// Webhooks; null without the scope `webhooks:read`.
    webhooks: Option<WebhooksStatus>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PagesStatus {
    /// Number of pages.
    total: i64,
    /// Number of pages that visitors can see.
    published: i64,
    /// The newest pages, at most 10.
    newest: Vec<StatusPage>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StatusPage {
    id: Uuid,
    /// Path of the page on its site: `index` is the root.
    slug: String,
    /// Title of the page.
    title: String,
    /// Whether visitors can see the page.
    is_published: bool,
    /// URL on its own site, the one to share.
    subdomain_url: String,
    /// Number of page views.
    view_count: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FormsStatus {
    /// Number of forms.
    total: i64,
    /// Number of submissions of all of them.
    submissions: i64,
    /// The newest forms, at most 10.
    newest: Vec<StatusForm>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StatusForm {
    id: Uuid,
    /// Display name.
    name: String,
    /// Whether the form accepts submissions.
    status: FormStatus,
    /// URL of a page that shows the form.
    hosted_form_url: String,
    /// Number of submissions, without spam.
    submission_count: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AnalyticsSitesStatus {
    /// Number of analytics sites.
    total: i64,
    /// The newest analytics sites, at most 10.
    newest: Vec<AnalyticsSiteCountsView>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AutomationsStatus {
    /// Number of automations.
    total: i64,
    /// Number of enabled automations without a failure in the last run.
    enabled: i64,
    /// Number of enabled automations that failed in the last run.
    failing: i64,
    /// Number of disabled automations.
    disabled: i64,
    /// The newest automations, at most 10.
    newest: Vec<StatusAutomation>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StatusAutomation {
    id: Uuid,
    /// Display name.
    name: String,
    /// Whether it runs.
    enabled: bool,
    /// Number of ended runs.
    runs: i64,
    /// Number of failed runs.
    failures: i64,
    /// When the last run ended; null for never.
    last_run_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct WebhooksStatus {
    /// Number of webhooks.
    total: i64,
    /// Number of active webhooks that work.
    active: i64,
    /// Number of active webhooks with failing deliveries.
    failing: i64,
    /// Number of disabled webhooks.
    disabled: i64,
}

async fn read(
    call: Call<scope::AccountRead>,
    State(app): State<App>,
) -> Result<Reply<StatusResponse>, Problem> {
    let (account_id, bounds) = (call.account_id, OverviewBounds { count_max: None, slugs: SLUGS });
    // The numbers belong to one moment.
    let mut conn = store::begin_snapshot(&app.db).await?;
    let overview = find_overview(&mut conn, account_id, call.restrictions(), bounds, call.now).await?;
    let overview = overview.ok_or_else(|| Problem::not_found("account"))?;
    let months = store::monthly_usage::find_monthly_usage(&mut conn, account_id, call.now).await?;
    let pages = pages_status(&call, &app, &mut conn, &overview).await?;
    let forms = forms_status(&call, &app, &mut conn, &overview).await?;
    let automations = automations_status(&call, &mut conn, &overview).await?;
    let sites = list_sites(&call, &mut conn).await?;
    drop(conn);
    let analytics_sites = match sites {
        // Asks another store, without a connection of this one.
        Some(sites) => {
            let newest = with_event_counts(&app, &call, sites).await;
            Some(AnalyticsSitesStatus { total: overview.sites, newest })
        }
        None => None,
    };
    let account = &call.caller.account;
    let counts = overview.webhooks;
    let response = StatusResponse {
        plan: account.plan,
        claimed: account.claimed_at.is_some(),
        claim_deadline: account.claim_deadline.filter(|_| account.claimed_at.is_none()),
        usage: usage_of(account.plan, &overview.usage, &months),
        site_url: overview.subdomain.as_ref().map(|subdomain| app.addresses.site(&subdomain.name)),
        pages,
        forms,
        analytics_sites,
        automations,
        webhooks: may_read(&call, Resource::Webhooks).then(|| WebhooksStatus {
            total: counts.active + counts.failing + counts.disabled,
            active: counts.active,
            failing: counts.failing,
            disabled: counts.disabled,
        }),
    };
    let next = call.next_steps_of(&app, overview, After::Status);
    Ok(call.reply(response).with_next(next))
}

fn may_read<S>(call: &Call<S>, kind: Resource) -> bool {
    call.scopes().allows(Scope::new(kind, Action::Read))
}

async fn pages_status<S>(
    call: &Call<S>,
    app: &App,
    conn: &mut Conn,
    overview: &Overview,
) -> Result<Option<PagesStatus>, Problem> {
    if !may_read(call, Resource::Pages) {
        return Ok(None);
    }
    let filter = call.newest_filter(Resource::Pages, NEWEST as i64);
    let found = store::pages::list_pages(conn, call.account_id, &filter, &PageFilter::default()).await?;
    let newest = found.rows.into_iter().map(|page: PageSummary| StatusPage {
        id: page.id,
        subdomain_url: app.addresses.page(&page.subdomain, &page.slug),
        slug: page.slug,
        title: page.title,
        is_published: page.is_published,
        view_count: page.views,
    });
    let counts = overview.pages;
    Ok(Some(PagesStatus { total: counts.total, published: counts.published, newest: newest.collect() }))
}

async fn forms_status<S>(
    call: &Call<S>,
    app: &App,
    conn: &mut Conn,
    overview: &Overview,
) -> Result<Option<FormsStatus>, Problem> {
    if !may_read(call, Resource::Forms) {
        return Ok(None);
    }
    let filter = call.newest_filter(Resource::Forms, NEWEST as i64);
    let found = store::forms::list_forms(conn, call.account_id, &filter).await?;
    let newest = found.rows.into_iter().map(|form: Form| StatusForm {
        id: form.id,
        status: status_of(call, &form),
        hosted_form_url: app.addresses.form(form.id),
        submission_count: form.submission_count,
        name: form.name,
    });
    let (total, submissions) = (overview.forms, overview.submissions);
    Ok(Some(FormsStatus { total, submissions, newest: newest.collect() }))
}

async fn automations_status<S>(
    call: &Call<S>,
    conn: &mut Conn,
    overview: &Overview,
) -> Result<Option<AutomationsStatus>, Problem> {
    if !may_read(call, Resource::Automations) {
        return Ok(None);
    }
    let filter = call.newest_filter(Resource::Automations, NEWEST as i64);
    let found = store::automations::list_automations(conn, call.account_id, &filter).await?;
    let newest = found.rows.into_iter().map(|automation: Automation| StatusAutomation {
        id: automation.id,
        name: automation.name,
        enabled: automation.is_enabled,
        runs: automation.statistics.runs,
        failures: automation.statistics.failures,
        last_run_at: automation.statistics.last_run_at,
    });
    let counts = overview.automations;
    Ok(Some(AutomationsStatus {
        total: counts.enabled + counts.failing + counts.disabled,
        enabled: counts.enabled,
        failing: counts.failing,
        disabled: counts.disabled,
        newest: newest.collect(),
    }))
}

/// Returns the newest analytics sites; `None` if the caller may not read them.
async fn list_sites<S>(call: &Call<S>, conn: &mut Conn) -> Result<Option<Vec<store::sites::Site>>, Problem> {
    if !may_read(call, Resource::Analytics) {
        return Ok(None);
    }
    let filter = call.newest_filter(Resource::Analytics, NEWEST as i64);
    let mut sites = store::sites::list_sites(conn, call.account_id, &filter).await?;
    sites.truncate(NEWEST);
    Ok(Some(sites))
}
