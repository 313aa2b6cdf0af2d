//! Looks up the credential of an authenticated call.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use domain::months::month_of;
use domain::restrictions::{LISTABLE, Restrictions};
use domain::scopes::{Resource, ScopeSet};
use sqlx::types::Json;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::accounts::{Account, read_plan};
use crate::monthly_usage::MonthlyUsage;
use crate::usage::Usage;
use crate::{Conn, Error};

/// The caller of a request with everything that authorization needs, from one indexed read.
#[derive(Debug, Clone)]
pub struct Caller {
    pub credential: Credential,
    /// Every digest under which the secret may be stored: the HMACs of a key by all peppers, or the hash of a session token.
    pub fingerprints: Vec<[u8; 32]>,
    /// The account that owns the resources it may access.
    pub account: Account,
    pub scopes: ScopeSet,
    /// Restriction to a folder or to listed resources.
    pub restrictions: Restrictions,
    pub usage: Usage,
    /// Of the current calendar month.
    pub monthly_usage: MonthlyUsage,
}

/// How a caller authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// An API key.
    Key {
        id: Uuid,
        expires_at: Option<DateTime<Utc>>,
        /// To the minute.
        last_used_at: Option<DateTime<Utc>>,
        /// The one of its fingerprints that was stored when the key was found.
        stored: [u8; 32],
    },
    /// The session of a browser.
    Session {
        id: Uuid,
        /// The person who signed in.
        identity_id: Uuid,
        signed_in_at: DateTime<Utc>,
        /// When it ends without further use.
        expires_at: DateTime<Utc>,
        /// When its use was last recorded.
        last_seen_at: DateTime<Utc>,
        /// When it ends regardless of use.
        ends_at: DateTime<Utc>,
    },
}

impl Caller {
    /// The id of the caller's key, if it uses one.
    pub fn key_id(&self) -> Option<Uuid> {
        match self.credential {
            Credential::Key { id, .. } => Some(id),
            Credential::Session { .. } => None,
        }
    }

    /// The latest expiry of keys that this caller creates: that of its own key. Keys created in a session may last
    /// forever.
    pub fn keys_end_at(&self) -> Option<DateTime<Utc>> {
        match self.credential {
            Credential::Key { expires_at, .. } => expires_at,
            Credential::Session { .. } => None,
        }
    }

    /// Returns whether a key with these permissions is within the caller's own in every dimension. Only such keys may
    /// it create, see, rotate and revoke.
    pub fn may_hold(
        &self,
        scopes: ScopeSet,
        restrictions: &Restrictions,
        expires_at: Option<DateTime<Utc>>,
    ) -> bool {
        let ends_in_time = self.keys_end_at().is_none_or(|own| expires_at.is_some_and(|at| at <= own));
        scopes.is_subset_of(self.scopes) && restrictions.is_subset_of(&self.restrictions) && ends_in_time
    }
}

/// Returns the display name of a caller: label and public part of a key, or the e-mail of a session's identity.
pub async fn find_name(conn: &mut Conn, account_id: Uuid, credential: &Credential) -> Result<String, Error> {
    let name = match credential {
        Credential::Key { id, .. } => {
            query_scalar!(
                r#"select label || ' (' || shown_prefix || '…)' as "name!" from api_keys
               where account_id = $1 and id = $2"#,
                account_id,
                id,
            )
            .fetch_optional(conn)
            .await?
        }
        Credential::Session { id, .. } => {
            query_scalar!(
                r#"select coalesce(i.email, i.name, i.subject) as "name!" from sessions s
               join identities i on i.id = s.identity_id where s.account_id = $1 and s.id = $2"#,
                account_id,
                id,
            )
            .fetch_optional(conn)
            .await?
        }
    };
    Ok(name.unwrap_or_else(|| "a credential that is gone".to_owned()))
}

/// Reads account and usage from a row that has their columns.
macro_rules! read_account {
    ($row:ident) => {
        (
            Account {
                id: $row.id,
                plan: read_plan(&$row.plan)?,
                name: $row.name,
                timezone: $row.timezone,
                subdomain: $row.subdomain,
                email: $row.email,
                claim_deadline: $row.claim_deadline,
                claimed_at: $row.claimed_at,
                suspended_at: $row.suspended_at,
                created_at: $row.created_at,
            },
            Usage {
                projects: $row.projects,
                webhooks: $row.webhooks,
                domains: $row.domains,
                subdomains: $row.subdomains,
                storage_bytes: $row.storage_bytes,
            },
            MonthlyUsage {
                events: $row.events.unwrap_or_default(),
                automation_runs: $row.automation_runs.unwrap_or_default(),
            },
        )
    };
}

/// Returns the caller of a key, or `None` if the key is unknown or revoked. `fingerprints` are those of this key by each
/// pepper.
///
/// Takes no account, because the key determines it.
pub async fn find_by_key(
    conn: &mut Conn,
    fingerprints: &[[u8; 32]],
    now: DateTime<Utc>,
) -> Result<Option<Caller>, Error> {
    let row = query!(
        r#"select k.id as key_id, k.fingerprint, k.scopes, k.folder_id,
                  k.resource_ids as "resource_ids: Json<BTreeMap<String, BTreeSet<Uuid>>>",
                  k.expires_at, k.last_used_at,
                  a.id, a.plan, a.name, a.timezone, a.claim_deadline, a.claimed_at, a.suspended_at, a.created_at,
                  (select name from subdomains where account_id = a.id order by created_at, id limit 1) as subdomain,
                  i.email as "email?",
                  u.projects, u.webhooks, u.domains, u.subdomains, u.storage_bytes,
                  m.events as "events?", m.automation_runs as "automation_runs?"
           from api_keys k
           join accounts a on a.id = k.account_id
           join usage u on u.account_id = a.id
           left join monthly_usage m on m.account_id = a.id and m.month = $2
           left join identity_accounts own on own.account_id = a.id
           left join identities i on i.id = own.identity_id
           where k.fingerprint = any($1) and k.revoked_at is null"#,
        fingerprints as _,
        month_of(now),
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    // One of those that were looked for, so it has their length.
    let stored = row.fingerprint.as_slice().try_into().unwrap_or_default();
    let (id, expires_at, last_used_at) = (row.key_id, row.expires_at, row.last_used_at);
    let scopes = read_scopes(&row.scopes)?;
    let restrictions = read_restrictions(row.folder_id, row.resource_ids.0)?;
    let (account, usage, monthly_usage) = read_account!(row);
    let credential = Credential::Key { id, expires_at, last_used_at, stored };
    let fingerprints = fingerprints.to_vec();
    Ok(Some(Caller { credential, fingerprints, account, scopes, restrictions, usage, monthly_usage }))
}

/// Returns the caller of a session, with full permissions on its account. `None` if the session has ended or has no
/// account yet.
pub async fn find_by_session(
    conn: &mut Conn,
    token_hash: &[u8; 32],
    now: DateTime<Utc>,
) -> Result<Option<Caller>, Error> {
    let row = query!(
        r#"select s.id as session_id, s.identity_id, s.created_at as signed_in_at, s.expires_at, s.last_seen_at, s.ends_at,
                  a.id, a.plan, a.name, a.timezone, a.claim_deadline, a.claimed_at, a.suspended_at, a.created_at,
                  (select name from subdomains where account_id = a.id order by created_at, id limit 1) as subdomain,
                  i.email,
                  u.projects, u.webhooks, u.domains, u.subdomains, u.storage_bytes,
                  m.events as "events?", m.automation_runs as "automation_runs?"
           from sessions s
           join identities i on i.id = s.identity_id
           join accounts a on a.id = s.account_id
           join usage u on u.account_id = a.id
           left join monthly_usage m on m.account_id = a.id and m.month = $3
           where s.token_hash = $1 and s.expires_at > $2"#,
        token_hash,
        now,
        month_of(now),
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let credential = Credential::Session {
        id: row.session_id,
        identity_id: row.identity_id,
        signed_in_at: row.signed_in_at,
        expires_at: row.expires_at,
        last_seen_at: row.last_seen_at,
        ends_at: row.ends_at,
    };
    let (account, usage, monthly_usage) = read_account!(row);
    let (scopes, restrictions, fingerprints) = (ScopeSet::FULL, Restrictions::default(), vec![*token_hash]);
    Ok(Some(Caller { credential, fingerprints, account, scopes, restrictions, usage, monthly_usage }))
}

/// Returns whether a caller that was found earlier would still be accepted with the same credential for the same
/// account.
pub async fn is_current(conn: &mut Conn, caller: &Caller, now: DateTime<Utc>) -> Result<bool, Error> {
    let found = match (caller.credential, caller.fingerprints.as_slice()) {
        // Another replica may have stored it under another pepper meanwhile.
        (Credential::Key { .. }, fingerprints) => find_by_key(conn, fingerprints, now).await?,
        (Credential::Session { .. }, [token_hash, ..]) => find_by_session(conn, token_hash, now).await?,
        (Credential::Session { .. }, []) => None,
    };
    Ok(found
        .is_some_and(|found| found.account.id == caller.account.id && found.account.suspended_at.is_none()))
}

pub(crate) fn read_scopes(words: &[String]) -> Result<ScopeSet, Error> {
    ScopeSet::parse(words.iter().map(String::as_str)).map_err(|word| Error::Unreadable {
        table: "api_keys",
        column: "scopes",
        value: word.to_owned(),
    })
}

/// An unknown kind is an error, because ignoring it would widen the key.
pub(crate) fn read_restrictions(
    folder_id: Option<Uuid>,
    listed: BTreeMap<String, BTreeSet<Uuid>>,
) -> Result<Restrictions, Error> {
    let known = |(word, ids): (String, BTreeSet<Uuid>)| -> Result<(Resource, BTreeSet<Uuid>), Error> {
        let resource = LISTABLE.into_iter().find(|resource| resource.as_str() == word);
        let unreadable = Error::Unreadable { table: "api_keys", column: "resource_ids", value: word };
        Ok((resource.ok_or(unreadable)?, ids))
    };
    Ok(Restrictions { folder_id, ids: listed.into_iter().map(known).collect::<Result<_, _>>()? })
}
