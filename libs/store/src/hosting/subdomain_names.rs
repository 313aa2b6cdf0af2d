//! Names of subdomains: reserved, assigned, and kept for a while after a rename.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use domain::plans::Plan;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::list_filter::sorted_rows;
use crate::subdomains::insert_subdomain;
use crate::usage::{self, Counter};
use crate::{Conn, Error, ListFilter};

/// How many suggested names are tried.
const SUGGESTIONS: usize = 5;

/// A subdomain as its owner sees it.
#[derive(Debug, Clone)]
pub struct ListedSubdomain {
    pub id: Uuid,
    pub name: String,
    /// The number of pages that the caller may see.
    pub pages: i64,
    pub created_at: DateTime<Utc>,
}

/// A subdomain to rename.
#[derive(Debug, Clone)]
pub struct RenamableSubdomain {
    pub id: Uuid,
    pub name: String,
    /// The times of its recent renames.
    pub renamed_at: Vec<DateTime<Utc>>,
}

/// Returns the account's subdomains. Counts only pages in the filter's folder and, if given, among
/// `pages`.
pub async fn list_subdomains(
    conn: &mut Conn,
    account_id: Uuid,
    filter: &ListFilter,
    pages: Option<&BTreeSet<Uuid>>,
) -> Result<Vec<ListedSubdomain>, Error> {
    let pages: Option<Vec<Uuid>> = pages.map(|ids| ids.iter().copied().collect());
    Ok(sorted_rows!(
        ListedSubdomain,
        conn,
        account_id,
        filter,
        r#"select s.id, s.name, s.created_at,
                  (select count(*) from pages p
                   where p.subdomain_id = s.id and ($2::uuid is null or p.folder_id = $2)
                     and ($7::uuid[] is null or p.id = any($7))) as "pages!"
           from subdomains s
           where s.account_id = $1 and ($3::uuid[] is null or s.id = any($3))"#,
        "s.created_at",
        "s.id",
        pages.as_deref()
    )?)
}

/// Reserves a name until the end of the transaction. Returns `false` if another account has it or gave it up recently, or
/// was deleted with it recently; the account's own former names are available to it.
pub async fn reserve_name(
    conn: &mut Conn,
    account_id: Uuid,
    name: &str,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    // Names are in two tables, so no constraint can keep them unique; this lock serializes the attempts instead.
    query!("select pg_advisory_xact_lock(hashtextextended($1, 0))", name).execute(&mut *conn).await?;
    let taken = query_scalar!(
        r#"select exists (select from subdomains where name = $2)
               or exists (select from former_names where name = $2 and account_id <> $1 and kept_until > $3)
               or exists (select from resting_names where name = $2 and kept_until > $3)
               as "taken!""#,
        account_id,
        name,
        now,
    )
    .fetch_one(&mut *conn)
    .await?;
    if !taken {
        query!("delete from former_names where name = $1", name).execute(conn).await?;
    }
    Ok(!taken)
}

/// Inserts the first subdomain of a new account under a suggested name, and returns the name. Returns `None` if several
/// suggestions in a row were taken.
pub async fn insert_first(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    now: DateTime<Utc>,
    suggest: impl Fn() -> String,
) -> Result<Option<String>, Error> {
    usage::reserve(conn, account_id, Counter::Subdomains, Plan::Free.limits().subdomains).await?;
    insert_suggested(conn, account_id, id, now, suggest).await
}

/// Inserts a subdomain under the first suggested name that is free and returns the name, or `None` after several
/// attempts.
pub async fn insert_suggested(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    now: DateTime<Utc>,
    mut suggest: impl FnMut() -> String,
) -> Result<Option<String>, Error> {
    for _ in 0..SUGGESTIONS {
        let name = suggest();
        if reserve_name(conn, account_id, &name, now).await? {
            insert_subdomain(conn, account_id, id, &name, now).await?;
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Locks and returns the account's subdomain with this id; without an id, its oldest one.
pub async fn lock_subdomain(
    conn: &mut Conn,
    account_id: Uuid,
    id: Option<Uuid>,
) -> Result<Option<RenamableSubdomain>, Error> {
    let subdomain = query_as!(
        RenamableSubdomain,
        "select id, name, renamed_at from subdomains
         where account_id = $1 and ($2::uuid is null or id = $2) order by created_at, id limit 1 for update",
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(subdomain)
}

/// Renames a locked subdomain to a reserved name. The former name redirects to it until `kept_until`.
pub async fn update_name(
    conn: &mut Conn,
    account_id: Uuid,
    subdomain: &RenamableSubdomain,
    name: &str,
    now: DateTime<Utc>,
    kept_until: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "update subdomains set name = $3, renamed_at = $4 where account_id = $1 and id = $2",
        account_id,
        subdomain.id,
        name,
        &subdomain.renamed_at,
    )
    .execute(&mut *conn)
    .await?;
    query!(
        "insert into former_names (name, account_id, subdomain_id, renamed_at, kept_until)
         values ($1, $2, $3, $4, $5)
         on conflict (name) do update set account_id = $2, subdomain_id = $3, renamed_at = $4, kept_until = $5",
        subdomain.name,
        account_id,
        subdomain.id,
        now,
        kept_until,
    )
    .execute(conn)
    .await?;
    Ok(())
}
