//! What backups and restores ask Postgres. Over all accounts: they belong to the installation.

use std::collections::BTreeMap;

use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::blobs::digest;
use crate::{Conn, Error};

/// Bytes in the object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredBlob {
    pub account_id: Uuid,
    pub sha256: [u8; 32],
    pub size_bytes: i64,
    /// It will be deleted unless something references it by then; its bytes may be missing already.
    pub may_be_missing: bool,
}

/// A program that is connected to the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectedClient {
    pub address: String,
    pub connections: i64,
}

/// Returns the connections of others to this database, by address. There are none while no service runs.
pub async fn list_other_clients(conn: &mut Conn) -> Result<Vec<ConnectedClient>, Error> {
    let clients = query_as!(
        ConnectedClient,
        r#"select coalesce(host(client_addr), 'a local socket') as "address!", count(*) as "connections!"
           from pg_stat_activity
           where datname = current_database() and usename = current_user and backend_type = 'client backend'
             and pid <> pg_backend_pid()
           group by 1 order by 1"#,
    );
    Ok(clients.fetch_all(conn).await?)
}

/// Returns whether the server still replays the write-ahead log.
pub async fn is_in_recovery(conn: &mut Conn) -> Result<bool, Error> {
    Ok(query_scalar!(r#"select pg_is_in_recovery() as "is_in_recovery!""#).fetch_one(conn).await?)
}

/// Returns whether an operator's action with this target is recorded.
pub async fn has_action(conn: &mut Conn, command: &str, target: &str) -> Result<bool, Error> {
    let has_action = query_scalar!(
        r#"select exists (select from operator_actions where command = $1 and target = $2) as "exists!""#,
        command,
        target,
    );
    Ok(has_action.fetch_one(conn).await?)
}

/// Returns the number of rows of the tables in which people would miss one.
pub async fn count_rows(conn: &mut Conn) -> Result<BTreeMap<String, i64>, Error> {
    let counts = query!(
        r#"select 'accounts' as "name!", count(*) as "rows!" from accounts
           union all select 'analytics_sites', count(*) from analytics_sites
           union all select 'assets', count(*) from assets
           union all select 'automations', count(*) from automations
           union all select 'blobs', count(*) from blobs
           union all select 'forms', count(*) from forms
           union all select 'pages', count(*) from pages
           union all select 'submissions', count(*) from submissions
           union all select 'webhooks', count(*) from webhooks"#,
    );
    Ok(counts.fetch_all(conn).await?.into_iter().map(|row| (row.name, row.rows)).collect())
}

/// Returns up to `limit` blobs after the one with this account and digest, in their order.
pub async fn list_blobs(
    conn: &mut Conn,
    after: (Uuid, [u8; 32]),
    limit: i64,
) -> Result<Vec<StoredBlob>, Error> {
    let rows = query!(
        r#"select account_id, sha256, size_bytes, look_at is not null as "may_be_missing!" from blobs
           where (account_id, sha256) > ($1, $2) order by account_id, sha256 limit $3"#,
        after.0,
        &after.1,
        limit,
    )
    .fetch_all(conn)
    .await?;
    let blob = |account_id, sha256: Vec<u8>, size_bytes, may_be_missing| {
        Ok(StoredBlob { account_id, sha256: digest(&sha256)?, size_bytes, may_be_missing })
    };
    rows.into_iter().map(|row| blob(row.account_id, row.sha256, row.size_bytes, row.may_be_missing)).collect()
}

/// Returns those of these sites that don't exist.
pub async fn find_missing_sites(conn: &mut Conn, site_ids: &[Uuid]) -> Result<Vec<Uuid>, Error> {
    let missing = query_scalar!(
        r#"select id as "id!" from unnest($1::uuid[]) as given (id)
           where not exists (select from analytics_sites s where s.id = given.id)"#,
        site_ids,
    );
    Ok(missing.fetch_all(conn).await?)
}

/// Locks an account before it is deleted. Returns `false` if it doesn't exist.
pub async fn lock_account(conn: &mut Conn, account_id: Uuid) -> Result<bool, Error> {
    let locked = query!("select id from accounts where id = $1 for update", account_id).fetch_optional(conn);
    Ok(locked.await?.is_some())
}
