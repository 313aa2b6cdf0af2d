//! Subdomains: the names sites are served under.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{Conn, Error};

/// A site's name.
#[derive(Debug, Clone)]
pub struct Subdomain {
    /// Its id.
    pub id: Uuid,
    /// `<name>.<sites domain>`.
    pub name: String,
}

/// What the edge must know of a site before it serves it.
#[derive(Debug, Clone)]
pub struct Site {
    /// The subdomain whose pages it shows.
    pub subdomain_id: Uuid,
    /// Whether its account belongs to somebody; if not, search engines are kept away.
    pub claimed: bool,
    /// Whether the operator has suspended its account.
    pub suspended: bool,
    /// The name it has now, if it was asked for under one it gave up.
    pub moved_to: Option<String>,
}

/// Stores a subdomain under a name that is reserved for the account ([`crate::subdomain_names::reserve_name`]).
pub async fn insert_subdomain(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    name: &str,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "insert into subdomains (id, account_id, name, created_at) values ($1, $2, $3, $4)",
        id,
        account_id,
        name,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The account's subdomain with that id, or its first (the oldest) without one.
pub async fn find_subdomain(
    conn: &mut Conn,
    account_id: Uuid,
    id: Option<Uuid>,
) -> Result<Option<Subdomain>, Error> {
    let found = query_as!(
        Subdomain,
        "select id, name from subdomains
         where account_id = $1 and ($2::uuid is null or id = $2) order by created_at, id limit 1",
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(found)
}

/// The site served under a name, whoever's it is: visitors have no account. A name that was given up leads to the
/// site until its time is over, unless another has it.
pub async fn find_site_by_name(
    conn: &mut Conn,
    name: &str,
    now: DateTime<Utc>,
) -> Result<Option<Site>, Error> {
    let site = query_as!(
        Site,
        r#"select s.id as subdomain_id, a.claimed_at is not null as "claimed!",
                  a.suspended_at is not null as "suspended!", nullif(s.name, $1) as moved_to
           from subdomains s join accounts a on a.id = s.account_id
           where s.name = $1
              or s.id = (select f.subdomain_id from former_names f where f.name = $1 and f.kept_until > $2)
           order by s.name = $1 desc limit 1"#,
        name,
        now,
    )
    .fetch_optional(conn)
    .await?;
    Ok(site)
}
