//! Lists of accounts, and what a lookup finds.

use std::fmt;

use anyhow::{Context as _, Result, bail};
use chrono::{DateTime, Utc};
use domain::plans::Plan;
use store::purge_status::{PurgeBacklog, read_purge_status};
use store::{Conn, account_overview, accounts, identities};
use uuid::Uuid;

use super::account_lookup;
use super::overview::{self, Overview};

/// Accounts with their plans and the times of their creation.
#[derive(Debug)]
pub struct AccountList(Vec<(Uuid, Plan, DateTime<Utc>)>);

/// What a lookup finds.
#[derive(Debug)]
pub enum Found {
    /// The only account that matches.
    One(Box<Overview>),
    /// Several ids, with their owners.
    Several(Vec<(Uuid, String)>),
}

/// Returns the newest accounts.
pub async fn list_newest(conn: &mut Conn, limit: i64) -> Result<AccountList> {
    Ok(AccountList(accounts::list_newest(conn, limit).await?))
}

/// Looks an account up by an id, a current or former name, a key's prefix or its owner's e-mail address.
///
/// # Errors
///
/// Nothing matches.
pub async fn find(conn: &mut Conn, text: &str, sites_domain: &str) -> Result<Found> {
    let lookup = account_lookup::parse(text, sites_domain);
    match account_overview::find_accounts(conn, &lookup).await?.as_slice() {
        [] => {
            bail!("no account matches `{text}`: use an id, a name, a key's prefix or an e-mail address")
        }
        [account_id] => {
            let overview = overview::load(conn, *account_id).await?;
            Ok(Found::One(Box::new(overview.context("the account was just deleted")?)))
        }
        several => {
            let mut found = Vec::new();
            for account_id in several {
                let holder = identities::find_holder(conn, *account_id).await?;
                found.push((*account_id, overview::holder(holder.as_ref())));
            }
            Ok(Found::Several(found))
        }
    }
}

/// Returns the deletions that are under way, of one account or all, as a table.
pub async fn purge_status(conn: &mut Conn, account_id: Option<Uuid>, now: DateTime<Utc>) -> Result<String> {
    let status = read_purge_status(conn, account_id, now).await?;
    let line = |what: &str, backlog: &PurgeBacklog| {
        let overdue = match backlog.oldest_due {
            None => String::new(),
            Some(since) => format!(", the oldest for {} minutes", (now - since).num_minutes()),
        };
        format!("{what:<40} {:>8}   {} due{overdue}", backlog.rows, backlog.due)
    };
    let lines = [
        line("expired trials to delete", &status.trials),
        line("events of deleted accounts and sites", &status.events),
        line("… deleted once, to be checked", &status.events_again),
        line("files of deleted accounts", &status.files),
        line("… deleted once, to be checked", &status.files_again),
    ];
    Ok(lines.join("\n"))
}

impl fmt::Display for AccountList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<36}  {:<5}  created", "account", "plan")?;
        for (id, plan, created_at) in &self.0 {
            write!(f, "\n{id}  {:<5}  {}", plan.as_str(), created_at.format("%Y-%m-%d %H:%M"))?;
        }
        Ok(())
    }
}

impl Found {
    /// Returns the overview, or the ids to choose from. `text` is what was looked up.
    #[must_use]
    pub fn page(&self, text: &str, now: DateTime<Utc>) -> String {
        match self {
            Self::One(overview) => overview.page(now),
            Self::Several(several) => {
                let lines = several.iter().map(|(id, holder)| format!("{id}  {holder}\n"));
                format!("Several accounts match `{text}`; use an id:\n{}", lines.collect::<String>())
            }
        }
    }
}
