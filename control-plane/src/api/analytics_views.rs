//! Analytics sites as their owners see them.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use domain::Complaint;
use domain::analytics::{Lifetime, Zone};
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::Serialize;
use store::Conn;
use store::sites::Site;
use uuid::Uuid;
use warehouse::Questions;
use web::Problem;

use crate::App;
use crate::call::Call;
use crate::query_admission::query_problem;

/// Faults told of one question.
const COMPLAINTS_MAX: usize = 20;

/// A site.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SiteView {
    pub(super) id: Uuid,
    /// Public: events carry it.
    site_token: String,
    name: String,
    domain: Option<String>,
    subdomain_id: Option<Uuid>,
    folder_id: Option<Uuid>,
    /// IANA name of the time zone in which its days begin.
    timezone: String,
    /// Whether visitors are left out whose browser says that they don't want to be tracked (`DNT`, `Sec-GPC`).
    honour_dnt: bool,
    /// How long a returning visitor can be known, for retention alone: `day`, `week`, `month` or `quarter`.
    visitor_id_lifetime: Lifetime,
    created_at: DateTime<Utc>,
}

/// A site with what was counted.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CountedSite {
    #[serde(flatten)]
    site: SiteView,
    /// Events counted so far; null while they can't be told.
    event_count: Option<u64>,
}

/// A site with what was counted and what was not.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WatchedSite {
    #[serde(flatten)]
    site: CountedSite,
    /// Events of the last 24 hours that were not counted, by reason: `bot`, `quota`, …
    dropped: BTreeMap<String, i64>,
}

impl From<Site> for SiteView {
    fn from(site: Site) -> Self {
        Self {
            id: site.id,
            site_token: site.site_token,
            name: site.name,
            domain: site.domain,
            subdomain_id: site.subdomain_id,
            folder_id: site.folder_id,
            timezone: site.timezone,
            honour_dnt: site.honour_dnt,
            visitor_id_lifetime: Lifetime::from_word(&site.visitor_id_lifetime).unwrap_or_default(),
            created_at: site.created_at,
        }
    }
}

/// A site of the account, within the caller's reach.
pub(super) async fn find<S>(call: &Call<S>, conn: &mut Conn, id: Uuid) -> Result<Site, Problem> {
    call.check_id(conn, Resource::Analytics, id).await?;
    let site = store::sites::find_site(conn, call.account_id, id).await?;
    site.ok_or_else(|| Problem::not_found("analytics site"))
}

/// The site a question is about, and the question as read where the site's days begin.
pub(super) async fn asked_about<S, Q>(
    app: &App,
    call: &Call<S>,
    id: Uuid,
    read: impl Fn(Zone) -> Result<Q, Vec<Complaint>>,
) -> Result<(Site, Q), Problem> {
    // What is wrong is wrong in every zone, and said before anybody looks whether there is such a site.
    read(Zone::UTC).map_err(refused)?;
    let mut conn = store::acquire(&app.db).await?;
    let site = find(call, &mut conn, id).await?;
    drop(conn);
    // Checked when it was set; a zone that is gone since is no reason to answer nothing.
    let zone = site.timezone.parse().unwrap_or(Zone::UTC);
    Ok((site, read(zone).map_err(refused)?))
}

/// Of thousands of faults the first few tell enough.
fn refused(mut complaints: Vec<Complaint>) -> Problem {
    complaints.truncate(COMPLAINTS_MAX);
    Problem::validation(complaints)
}

/// Asks about a site when it is the account's turn, which is held until there is an answer. A caller who hangs up ends
/// both.
pub(super) async fn ask<'a, S, T, F>(
    app: &'a App,
    call: &Call<S>,
    site_id: Uuid,
    question: impl FnOnce(Questions<'a>) -> F,
) -> Result<T, Problem>
where
    F: Future<Output = Result<T, warehouse::Error>>,
{
    let _permit = app.query_admission.acquire(call.account_id).await?;
    let questions = app.warehouse.questions(site_id, app.query_admission.limits());
    question(questions).await.map_err(query_problem)
}

/// A site with all there is to know of it; drops of the last 24 hours are counted by whole hours.
pub(super) async fn watched<S>(app: &App, call: &Call<S>, id: Uuid) -> Result<WatchedSite, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let site = find(call, &mut conn, id).await?;
    let drops =
        store::drops::list_drops(&mut conn, call.account_id, id, call.now - TimeDelta::hours(24)).await?;
    drop(conn);
    let site =
        counted(app, call, vec![site]).await.pop().ok_or_else(|| Problem::not_found("analytics site"))?;
    Ok(WatchedSite { site, dropped: drops.into_iter().map(|one| (one.reason, one.count)).collect() })
}

/// Sites with their events counted, when it is the account's turn. What else there is to say of them stands without.
pub(super) async fn counted<S>(app: &App, call: &Call<S>, sites: Vec<Site>) -> Vec<CountedSite> {
    if sites.is_empty() {
        return vec![];
    }
    let ids: Vec<Uuid> = sites.iter().map(|site| site.id).collect();
    let counts = async {
        let _permit = app.query_admission.acquire(call.account_id).await?;
        app.warehouse.count_events_by_site(&ids).await.map_err(query_problem)
    };
    let counts = counts.await.inspect_err(|problem| {
        tracing::warn!(code = problem.code().word(), "sites are told without their counts");
    });
    let counts = counts.ok();
    let count = |id| counts.as_ref().map(|counts| counts.get(&id).copied().unwrap_or_default());
    sites.into_iter().map(|site| CountedSite { event_count: count(site.id), site: site.into() }).collect()
}

/// What makes a page's visits count.
pub(super) fn script_tag(app: &App, site_token: &str) -> String {
    format!(r#"<script defer src="{}/script.js" data-site="{site_token}"></script>"#, app.addresses.base())
}
