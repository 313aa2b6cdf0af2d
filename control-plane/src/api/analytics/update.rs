//! Updates and deletes analytics sites.
//!
//! A new time zone moves the boundaries of all days, including past ones. A new visitor id lifetime starts when the
//! collector next rotates the salt of visitor hashes.

use axum::extract::State;
use contract::Change;
use domain::analytics::{Lifetime, parse_zone};
use domain::scopes::Resource;
use domain::sites;
use schemars::JsonSchema;
use serde::Deserialize;
use store::purges;
use store::sites::{SiteChange, delete_site, update_site};
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Deletion, Json, Path, Problem, Reply};

use super::views::{AnalyticsSiteView, find};
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UpdateAnalyticsSiteRequest {
    /// Display name.
    #[schemars(length(min = 1, max = sites::NAME_CHARS_MAX), regex(pattern = r"\S"))]
    name: Option<String>,
    /// Host name of the site; null removes it.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = 253), extend("format" = "idn-hostname"))]
    domain: Option<Option<String>>,
    /// IANA name of the time zone in which the site's days start, such as `Europe/Berlin`; initially `UTC`. All later
    /// responses use it, including those about past days. Only retention keeps past days as they were counted: UTC days
    /// until another zone was set.
    #[schemars(extend("examples" = ["Europe/Berlin"]))]
    timezone: Option<String>,
    /// Whether to ignore visitors if their browser asks not to be tracked (`DNT`, `Sec-GPC`); initially true.
    honour_dnt: Option<bool>,
    /// Whether the part of an address after `#` distinguishes pages, as in `/#/users`; initially false. Applies to the
    /// pages hosted here; pages elsewhere have it in their tag, as `data-hash`.
    hash_routing: Option<bool>,
    /// How long a returning visitor can be recognized, for retention only; initially `month`. A shorter lifetime
    /// protects visitors more and hides returns over longer periods.
    visitor_id_lifetime: Option<Lifetime>,
}

pub(super) async fn update(
    call: Call<scope::AnalyticsUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(request): Json<UpdateAnalyticsSiteRequest>,
) -> Result<Reply<AnalyticsSiteView>, Problem> {
    let domain = request.domain.as_ref().and_then(Option::as_deref);
    let mut errors = sites::check(request.name.as_deref().unwrap_or("-"), domain);
    errors.extend(request.timezone.as_deref().and_then(|name| parse_zone(name).err()));
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let change = SiteChange {
        name: request.name.map(|name| name.trim().to_owned()),
        domain: request.domain.map(|domain| domain.as_deref().map(sites::normal_domain)),
        timezone: request.timezone,
        honour_dnt: request.honour_dnt,
        hash_routing: request.hash_routing,
        visitor_id_lifetime: request.visitor_id_lifetime.map(Lifetime::as_str),
    };
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Analytics, id).await?;
    update_site(&mut tx, call.account_id, id, &change).await?;
    let site = find(&call, &mut tx, id).await?;
    let change =
        Change::AnalyticsSite { site_token: site.site_token.clone(), subdomain_id: site.subdomain_id };
    call.commit(&app, tx, vec![change]).await?;
    Ok(call.reply(site.into()))
}

/// The site disappears at once; a job deletes its rows from the warehouse.
pub(super) async fn delete(
    call: Call<scope::AnalyticsDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deletion>, Problem> {
    call.require_fresh_sign_in(&app)?;
    let mut tx = store::begin(&app.db).await?;
    // Locks the usage counters first, as every transaction does.
    usage::lock(&mut tx, call.account_id).await?;
    call.check_id(&mut tx, Resource::Analytics, id).await?;
    let gone = delete_site(&mut tx, call.account_id, id).await?;
    let (site_token, subdomain_id) = gone.ok_or_else(|| Problem::not_found("analytics site"))?;
    usage::release(&mut tx, call.account_id, Counter::Projects).await?;
    purges::insert_event_purge(&mut tx, call.account_id, Some(id), call.now).await?;
    call.commit(&app, tx, vec![Change::AnalyticsSite { site_token, subdomain_id }]).await?;
    Ok(call.reply(Deletion::now()))
}
