//! Editing and deleting analytics sites.
//!
//! A new time zone moves the edges of all days, those past included; another life of ids begins with the next salt.

use axum::extract::State;
use contract::Change;
use domain::analytics::{Lifetime, read_zone};
use domain::scopes::Resource;
use domain::sites;
use schemars::JsonSchema;
use serde::Deserialize;
use store::purges;
use store::site_edits::{self, SiteChange};
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Deleted, Json, Path, Problem, Reply};

use super::analytics_views::{SiteView, find};
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EditedSite {
    #[schemars(length(min = 1, max = sites::NAME_CHARS_MAX), regex(pattern = r"\S"))]
    name: Option<String>,
    /// Null removes it.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = 253), extend("format" = "idn-hostname"))]
    domain: Option<Option<String>>,
    /// IANA name of the zone in which the site's days begin, such as `Europe/Berlin`; `UTC` unless set. All answers
    /// follow it from now on, those about days past as well.
    #[schemars(extend("examples" = ["Europe/Berlin"]))]
    timezone: Option<String>,
    /// Whether visitors are left out whose browser says that they don't want to be tracked; true unless set.
    honour_dnt: Option<bool>,
    /// How long a returning visitor can be known, for retention alone; `month` unless set. A shorter one is kinder
    /// to visitors, and makes retention blind to longer periods.
    visitor_id_lifetime: Option<Lifetime>,
}

pub(super) async fn update(
    call: Call<scope::AnalyticsUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(edited): Json<EditedSite>,
) -> Result<Reply<SiteView>, Problem> {
    let domain = edited.domain.as_ref().and_then(Option::as_deref);
    let mut complaints = sites::check(edited.name.as_deref().unwrap_or("-"), domain);
    complaints.extend(edited.timezone.as_deref().and_then(|name| read_zone(name).err()));
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints));
    }
    let change = SiteChange {
        name: edited.name.map(|name| name.trim().to_owned()),
        domain: edited.domain,
        timezone: edited.timezone,
        honour_dnt: edited.honour_dnt,
        visitor_id_lifetime: edited.visitor_id_lifetime.map(Lifetime::word),
    };
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Analytics, id).await?;
    site_edits::update_site(&mut tx, call.account_id, id, &change).await?;
    let site = find(&call, &mut tx, id).await?;
    let change =
        Change::AnalyticsSite { site_token: site.site_token.clone(), subdomain_id: site.subdomain_id };
    app.commit(tx, vec![change]).await?;
    Ok(call.reply(site.into()))
}

/// Nothing is to be seen of the site from now on; a job removes its rows from the warehouse.
pub(super) async fn delete(
    call: Call<scope::AnalyticsDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deleted>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    // First, as everywhere.
    usage::lock(&mut tx, call.account_id).await?;
    call.check_id(&mut tx, Resource::Analytics, id).await?;
    let gone = site_edits::delete_site(&mut tx, call.account_id, id).await?;
    let (site_token, subdomain_id) = gone.ok_or_else(|| Problem::not_found("analytics site"))?;
    usage::give_back(&mut tx, call.account_id, Counter::Projects).await?;
    purges::insert_event_purge(&mut tx, call.account_id, Some(id), call.now).await?;
    app.commit(tx, vec![Change::AnalyticsSite { site_token, subdomain_id }]).await?;
    Ok(call.reply(Deleted::now()))
}
