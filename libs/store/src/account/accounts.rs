//! Accounts: created as trials, then claimed, and suspended if necessary. [`crate::purges`] deletes them.

use chrono::{DateTime, Utc};
use contract::Change;
use domain::plans::Plan;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::deploys::{kept_files, previews};
use crate::{Conn, Error, blobs, outbox, usage};

/// A trial to create.
#[derive(Debug)]
pub struct NewTrial {
    pub id: Uuid,
    /// SHA-256 of the claim token.
    pub claim_token_hash: [u8; 32],
    pub claim_deadline: DateTime<Utc>,
    pub created_at: DateTime<Utc>,
}

/// An account as its owner sees it.
#[derive(Debug, Clone)]
pub struct Account {
    pub id: Uuid,
    pub plan: Plan,
    pub name: Option<String>,
    /// IANA time zone name.
    pub timezone: String,
    /// The name of its oldest subdomain.
    pub subdomain: Option<String>,
    /// The owner's e-mail according to the identity provider.
    pub email: Option<String>,
    /// `None` once it is claimed.
    pub claim_deadline: Option<DateTime<Utc>>,
    /// `None` for a trial.
    pub claimed_at: Option<DateTime<Utc>>,
    /// `None` unless the operator suspended it.
    pub suspended_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

/// Inserts a trial account with counters at zero.
pub async fn insert_trial(conn: &mut Conn, trial: &NewTrial) -> Result<(), Error> {
    query!(
        "insert into accounts (id, claim_token_hash, claim_deadline, created_at) values ($1, $2, $3, $4)",
        trial.id,
        &trial.claim_token_hash,
        trial.claim_deadline,
        trial.created_at,
    )
    .execute(&mut *conn)
    .await?;
    query!("insert into usage (account_id) values ($1)", trial.id).execute(conn).await?;
    Ok(())
}

/// Returns an account.
pub async fn find_account(conn: &mut Conn, account_id: Uuid) -> Result<Option<Account>, Error> {
    let row = query!(
        "select id, plan, name, timezone, claim_deadline, claimed_at, suspended_at, created_at,
                (select name from subdomains where account_id = a.id order by created_at, id limit 1) as subdomain,
                (select i.email from identity_accounts own join identities i on i.id = own.identity_id
                 where own.account_id = a.id) as email
         from accounts a where id = $1",
        account_id,
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(Account {
            id: row.id,
            plan: read_plan(&row.plan)?,
            name: row.name,
            timezone: row.timezone,
            subdomain: row.subdomain,
            email: row.email,
            claim_deadline: row.claim_deadline,
            claimed_at: row.claimed_at,
            suspended_at: row.suspended_at,
            created_at: row.created_at,
        })
    })
    .transpose()
}

/// Changes to an account; `None` leaves a field unchanged.
#[derive(Debug, Default)]
pub struct AccountChange {
    /// The inner `None` removes the name.
    pub name: Option<Option<String>>,
    /// IANA time zone name.
    pub timezone: Option<String>,
}

/// Updates the account's settings.
pub async fn update_account(conn: &mut Conn, account_id: Uuid, change: &AccountChange) -> Result<(), Error> {
    query!(
        "update accounts set name = case when $2 then $3 else name end, timezone = coalesce($4, timezone)
         where id = $1",
        account_id,
        change.name.is_some(),
        change.name.as_ref().and_then(Option::as_ref),
        change.timezone,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the account's time zone, which stays as it is until the end of the transaction. A transaction that also locks
/// automations locks them after it, because a change of the zone does.
pub async fn lock_timezone(conn: &mut Conn, account_id: Uuid) -> Result<Option<String>, Error> {
    let zone = query_scalar!("select timezone from accounts where id = $1 for share", account_id);
    Ok(zone.fetch_optional(conn).await?)
}

/// Changes the plan. Returns `false` if there is no such account. The edge caches plans, so the caller must publish
/// [`list_cached_items`].
pub async fn update_plan(conn: &mut Conn, account_id: Uuid, plan: Plan) -> Result<bool, Error> {
    let done = query!("update accounts set plan = $2 where id = $1", account_id, plan.as_str())
        .execute(conn)
        .await?;
    Ok(done.rows_affected() > 0)
}

/// Returns the newest accounts of the installation, for its operator.
pub async fn list_newest(conn: &mut Conn, limit: i64) -> Result<Vec<(Uuid, Plan, DateTime<Utc>)>, Error> {
    let rows = query!("select id, plan, created_at from accounts order by created_at desc limit $1", limit)
        .fetch_all(conn)
        .await?;
    rows.into_iter().map(|row| Ok((row.id, read_plan(&row.plan)?, row.created_at))).collect()
}

/// Suspends an account: its sites, forms and short URLs answer 451, its keys 403, and its visits are not counted.
/// Ends its previews and its files of replaced deploys. Publishes the change to all caches. Keeps the time of the first suspension and the
/// reason of the last. Returns `false` if there is no such account.
pub async fn suspend(
    conn: &mut Conn,
    account_id: Uuid,
    reason: Option<&str>,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let done = query!(
        "update accounts set suspended_at = coalesce(suspended_at, $2),
                             suspension_reason = coalesce($3, suspension_reason) where id = $1",
        account_id,
        now,
        reason,
    )
    .execute(&mut *conn)
    .await?;
    delete_unpublished_files(conn, account_id, now).await?;
    publish_changes(conn, account_id, now).await?;
    Ok(done.rows_affected() > 0)
}

/// Deletes the files of previews, and those that sites keep from replaced deploys: a resumed account serves only what is live.
async fn delete_unpublished_files(
    conn: &mut Conn,
    account_id: Uuid,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    usage::lock(conn, account_id).await?;
    let deleted = kept_files::delete_kept(conn, account_id, kept_files::Filter::default()).await?;
    usage::release_bytes(conn, account_id, deleted.bytes).await?;
    blobs::release_blobs(conn, account_id, &deleted.blobs, now).await?;
    let ended = previews::end(conn, account_id, kept_files::Filter::default(), now).await?;
    let sites = deleted.subdomains.into_iter().map(|subdomain_id| Change::Site { subdomain_id });
    let changes: Vec<Change> = ended.into_iter().map(|host| Change::Host { host }).chain(sites).collect();
    outbox::insert_changes(conn, &changes, now).await
}

/// Ends a suspension. Returns `false` if there is no such account.
pub async fn resume(conn: &mut Conn, account_id: Uuid, now: DateTime<Utc>) -> Result<bool, Error> {
    let done = query!(
        "update accounts set suspended_at = null, suspension_reason = null where id = $1",
        account_id,
    )
    .execute(&mut *conn)
    .await?;
    publish_changes(conn, account_id, now).await?;
    Ok(done.rows_affected() > 0)
}

/// Writes [`list_cached_items`] to the outbox, due at once.
pub async fn publish_changes(conn: &mut Conn, account_id: Uuid, now: DateTime<Utc>) -> Result<(), Error> {
    let changes = list_cached_items(conn, account_id).await?;
    outbox::insert_changes(conn, &changes, now).await
}

/// Returns everything of an account that services cache, most urgent first: hosts (with former names and domains),
/// forms, analytics sites, and pages, some of which hold short URLs.
///
/// It must be published when the plan, the claim or the suspension changes and when the account is deleted, in the same
/// transaction. Items created later are not cached yet.
pub async fn list_cached_items(conn: &mut Conn, account_id: Uuid) -> Result<Vec<Change>, Error> {
    let hosts = query_scalar!(
        r#"select name as "name!" from subdomains where account_id = $1
           union all select name from former_names where account_id = $1
           union all select domain from domains where account_id = $1 and verified_at is not null"#,
        account_id,
    )
    .fetch_all(&mut *conn)
    .await?;
    let forms =
        query_scalar!("select id from forms where account_id = $1", account_id).fetch_all(&mut *conn).await?;
    let sites =
        query!("select site_token, subdomain_id from analytics_sites where account_id = $1", account_id)
            .fetch_all(&mut *conn)
            .await?;
    let pages = query!("select subdomain_id, slug, path from pages where account_id = $1", account_id)
        .fetch_all(conn)
        .await?;
    let hosts = hosts.into_iter().map(|host| Change::Host { host });
    let forms = forms.into_iter().map(|form_id| Change::Form { form_id });
    let sites = sites
        .into_iter()
        .map(|row| Change::AnalyticsSite { site_token: row.site_token, subdomain_id: row.subdomain_id });
    let pages = pages.into_iter().map(|row| Change::Page {
        subdomain_id: row.subdomain_id,
        slug: row.slug,
        path: row.path,
    });
    let files = std::iter::once(Change::AccountFiles { account_id });
    Ok(hosts.chain(files).chain(forms).chain(sites).chain(pages).collect())
}

pub(crate) fn read_plan(word: &str) -> Result<Plan, Error> {
    Plan::parse(word).ok_or_else(|| Error::Unreadable {
        table: "accounts",
        column: "plan",
        value: word.to_owned(),
    })
}
