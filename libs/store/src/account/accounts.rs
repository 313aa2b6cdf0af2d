//! Accounts: made as trials, claimed later, suspended if they must be. Their end is in [`crate::purges`].

use chrono::{DateTime, Utc};
use contract::Change;
use domain::plans::Plan;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error, outbox};

/// A trial about to be made.
#[derive(Debug)]
pub struct NewTrial {
    /// Its id.
    pub id: Uuid,
    /// SHA-256 of the claim token.
    pub claim_token_hash: [u8; 32],
    /// Until when it may be claimed.
    pub claim_deadline: DateTime<Utc>,
    /// Now.
    pub created_at: DateTime<Utc>,
}

/// An account as its owner sees it.
#[derive(Debug, Clone)]
pub struct Account {
    /// Its id.
    pub id: Uuid,
    /// What it pays for.
    pub plan: Plan,
    /// What its owner calls it.
    pub name: Option<String>,
    /// IANA name of its time zone.
    pub timezone: String,
    /// The name of its first subdomain, which is the oldest.
    pub subdomain: Option<String>,
    /// The e-mail of whoever it belongs to, as their provider says.
    pub email: Option<String>,
    /// Until when a trial may be claimed; none once it is.
    pub claim_deadline: Option<DateTime<Utc>>,
    /// Since when it belongs to somebody.
    pub claimed_at: Option<DateTime<Utc>>,
    /// Since when the operator has suspended it.
    pub suspended_at: Option<DateTime<Utc>>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

/// Makes a trial account, with its counters at nothing.
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

/// The account itself.
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

/// What changes of an account; `None` leaves a part as it is.
#[derive(Debug, Default)]
pub struct AccountChange {
    /// New name, or none at all.
    pub name: Option<Option<String>>,
    /// IANA name of another time zone.
    pub timezone: Option<String>,
}

/// Edits the account's own settings.
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

/// Puts an account on a plan; gives whether there is such an account. Edges remember plans: tell [`list_changes_of_account`].
pub async fn update_plan(conn: &mut Conn, account_id: Uuid, plan: Plan) -> Result<bool, Error> {
    let done =
        query!("update accounts set plan = $2 where id = $1", account_id, plan.word()).execute(conn).await?;
    Ok(done.rows_affected() > 0)
}

/// The newest accounts of the installation, for its operator.
pub async fn list_newest(conn: &mut Conn, limit: i64) -> Result<Vec<(Uuid, Plan, DateTime<Utc>)>, Error> {
    let rows = query!("select id, plan, created_at from accounts order by created_at desc limit $1", limit)
        .fetch_all(conn)
        .await?;
    rows.into_iter().map(|row| Ok((row.id, read_plan(&row.plan)?, row.created_at))).collect()
}

/// Suspends an account: its sites, forms and short addresses answer 451, its keys 403, its visits aren't counted.
/// The outbox tells everybody who remembers otherwise. Gives whether there is such an account; the first
/// suspension's time and the last one's reason are kept.
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
    publish_changes(conn, account_id, now).await?;
    Ok(done.rows_affected() > 0)
}

/// Ends an account's suspension; gives whether there is such an account.
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

/// Writes [`list_changes_of_account`] to the outbox, due at once.
pub async fn publish_changes(conn: &mut Conn, account_id: Uuid, now: DateTime<Utc>) -> Result<(), Error> {
    let changes = list_changes_of_account(conn, account_id).await?;
    outbox::insert_changes(conn, &changes, now).await
}

/// Everything of an account that services remember, most urgent first: what is served under its hosts, names
/// it gave up and its domains included, its forms, its analytics sites, and its pages, of which some hold short addresses.
///
/// To be told when the account's plan, claim or suspension changes, or when it ends. In the same transaction:
/// what is made afterwards is looked up anew anyway.
pub async fn list_changes_of_account(conn: &mut Conn, account_id: Uuid) -> Result<Vec<Change>, Error> {
    let hosts = query_scalar!(
        r#"select name as "name!" from subdomains where account_id = $1
           union all select name from former_names where account_id = $1
           union all select domain from domains where account_id = $1 and dns_status = 'verified'"#,
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
    let pages = query!("select subdomain_id, slug from pages where account_id = $1", account_id)
        .fetch_all(conn)
        .await?;
    let hosts = hosts.into_iter().map(|host| Change::Host { host });
    let forms = forms.into_iter().map(|form_id| Change::Form { form_id });
    let sites = sites
        .into_iter()
        .map(|row| Change::AnalyticsSite { site_token: row.site_token, subdomain_id: row.subdomain_id });
    let pages = pages.into_iter().map(|row| Change::Page { subdomain_id: row.subdomain_id, slug: row.slug });
    let files = std::iter::once(Change::AccountFiles { account_id });
    Ok(hosts.chain(files).chain(forms).chain(sites).chain(pages).collect())
}

pub(crate) fn read_plan(word: &str) -> Result<Plan, Error> {
    Plan::from_word(word).ok_or_else(|| Error::Unreadable {
        table: "accounts",
        column: "plan",
        value: word.to_owned(),
    })
}
