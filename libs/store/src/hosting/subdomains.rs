//! Subdomains, under which sites are served.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::static_sites::SiteRules;
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{Conn, Error};

/// A subdomain.
#[derive(Debug, Clone)]
pub struct Subdomain {
    pub id: Uuid,
    /// `<name>.<sites domain>`.
    pub name: String,
}

/// A site with the properties that the edge needs to serve it.
#[derive(Debug, Clone, Default)]
pub struct Site {
    pub subdomain_id: Uuid,
    /// Whether its account is claimed; other sites are hidden from search engines.
    pub claimed: bool,
    /// Whether its account is suspended.
    pub suspended: bool,
    /// Its current name, if it was found by a former one.
    pub moved_to: Option<String>,
    /// The value of `Strict-Transport-Security`, if it was found by a custom domain that asks for it.
    pub hsts: Option<Arc<str>>,
    /// Whether this is a preview, which serves only the files of its deploy.
    pub is_preview: bool,
    /// The deploy that it serves its files from.
    pub deploy_id: Option<Uuid>,
    /// The rules of that deploy.
    pub rules: SiteRules,
    /// Size of the rules as stored.
    pub rules_bytes: usize,
}

impl Site {
    /// Returns the id of what the site shows: a preview shows nothing of the live site of its subdomain.
    pub fn content_id(&self) -> Uuid {
        self.deploy_id.filter(|_| self.is_preview).unwrap_or(self.subdomain_id)
    }
}

/// A site as it is stored, with the rules of its deploy as text. To parse thousands of them takes milliseconds.
#[derive(Debug)]
pub struct StoredSite {
    pub subdomain_id: Uuid,
    pub(crate) claimed: bool,
    pub(crate) suspended: bool,
    pub(crate) moved_to: Option<String>,
    pub(crate) hsts: Option<String>,
    pub(crate) is_preview: bool,
    pub(crate) deploy_id: Option<Uuid>,
    pub(crate) rules: Option<String>,
}

impl StoredSite {
    /// Returns the size of the rules.
    pub fn rules_bytes(&self) -> usize {
        self.rules.as_ref().map_or(0, String::len)
    }

    /// Returns the site with parsed rules.
    pub fn parse(self) -> Site {
        let rules_bytes = self.rules_bytes();
        let Self { subdomain_id, claimed, suspended, moved_to, hsts, is_preview, deploy_id, rules } = self;
        let rules = rules.map(|text| serde_json::from_str(&text)).transpose();
        // Files are served all the same: an earlier version may have accepted a rule that this one does not.
        let rules = rules.unwrap_or_else(|error| {
            tracing::error!(%error, ?deploy_id, "the rules of a site can't be read");
            None
        });
        Site {
            subdomain_id,
            claimed,
            suspended,
            moved_to,
            hsts: hsts.map(Arc::from),
            is_preview,
            deploy_id,
            rules: rules.unwrap_or_default(),
            rules_bytes,
        }
    }
}

/// Inserts a subdomain under a reserved name ([`crate::subdomain_names::reserve_name`]).
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

/// Returns the account's subdomain with this id; without an id, its oldest one.
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

/// Returns the site with this name. Takes no account, because visitors have none. A former name leads to its site until
/// it expires or another site takes it.
pub async fn find_site_by_name(
    conn: &mut Conn,
    name: &str,
    now: DateTime<Utc>,
) -> Result<Option<StoredSite>, Error> {
    let site = query_as!(
        StoredSite,
        r#"select s.id as subdomain_id, a.claimed_at is not null as "claimed!", false as "is_preview!",
                  a.suspended_at is not null as "suspended!", nullif(s.name, $1) as moved_to, null::text as hsts,
                  d.id as "deploy_id?", d.rules::text as rules
           from subdomains s join accounts a on a.id = s.account_id
           left join served_deploys v on v.subdomain_id = s.id left join deploys d on d.id = v.deploy_id
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
