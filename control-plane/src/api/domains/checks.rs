//! Calls that check a domain's DNS: at once, or while it is read.

use axum::extract::State;
use chrono::TimeDelta;
use domain::domains::Found;
use domain::scopes::Resource;
use store::domains::{CheckContext, LeasedCheck};
use uuid::Uuid;
use web::{Code, Path, Problem, Reply};

use super::views::{DomainView, find, view};
use crate::App;
use crate::call::{Call, scope};

/// Longer than a check may take.
const LEASE: TimeDelta = TimeDelta::seconds(15);

/// Returns a domain. If its last check is too old, checks it first and waits for the result.
pub(super) async fn read(
    call: Call<scope::DomainsRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<DomainView>, Problem> {
    recheck(&call, &app, id).await?;
    reply(call, &app, id).await
}

/// Checks a domain now. If its records stand, a refused order for its certificate is repeated now.
pub(super) async fn check(
    call: Call<scope::DomainsUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<DomainView>, Problem> {
    if !recheck(&call, &app, id).await? {
        let seconds = app.domain_checks.recheck_after.num_seconds();
        let detail = format!("the domain was checked less than {seconds} s ago, or is being checked");
        return Err(Problem::new(Code::RateLimited, detail)
            .hint("read the result with GET /api/account/domains/{id}")
            .retry_after(u64::try_from(seconds).unwrap_or_default().max(1)));
    }
    // The owner may have mended what the certificate authority refused.
    let mut conn = store::acquire(&app.db).await?;
    store::domains::hurry_refused_order(&mut conn, call.account_id, id, app.clock.now()).await?;
    drop(conn);
    reply(call, &app, id).await
}

/// Checks a domain unless its last check is recent or one is under way. Returns whether it was checked.
async fn recheck<S>(call: &Call<S>, app: &App, id: Uuid) -> Result<bool, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Domains, id).await?;
    let before = call.now - app.domain_checks.recheck_after;
    let leased =
        store::domains::lease_check(&mut conn, call.account_id, id, before, call.now, call.now + LEASE)
            .await?;
    let Some(leased) = leased else { return Ok(false) };
    let before = find(call, &mut conn, id).await?.found;
    drop(conn);
    look_up(app, &leased, &before.map(|found| found.0).unwrap_or_default()).await?;
    Ok(true)
}

/// Looks up a domain's records and stores the result. The lookups are bounded in time, and hold no connection.
async fn look_up(app: &App, leased: &LeasedCheck, before: &Found) -> Result<(), Problem> {
    let checks = &app.domain_checks;
    let now = app.clock.now();
    let cname = checks.routing.cname(&leased.subdomain);
    let mut found = checks.resolver.find(&leased.domain, &checks.routing.target(&cname)).await;
    found.is_proxied = found.is_still_proxied(before);
    let context = CheckContext {
        now,
        routing: &checks.routing,
        schedule: &checks.schedule,
        fraction: app.rng.fraction(),
        scheduled: None,
    };
    let mut tx = store::begin(&app.db).await?;
    let changes = store::domains::store_check(&mut tx, &leased.domain, &found, &context).await?;
    app.commit(tx, changes).await
}

async fn reply<S>(call: Call<S>, app: &App, id: Uuid) -> Result<Reply<DomainView>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let domain = view(app, find(&call, &mut conn, id).await?, call.now);
    let hint = domain.hint();
    Ok(DomainView::with_next(call.reply(domain), id, hint))
}
