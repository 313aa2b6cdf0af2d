//! An account's overview on one screen, as plain text that can be pasted into a ticket.

use std::fmt::Write;

use anyhow::Result;
use chrono::{DateTime, Utc};
use domain::plans::UNLIMITED;
use store::Conn;
use store::account_overview::{self, Domain, Key, ResourceCounts, Subdomain, SuspensionStatus};
use store::accounts::{self, Account};
use store::identities::{self, Identity};
use store::usage::Usage;
use uuid::Uuid;

/// Maximum lines of each list, to fit one screen.
const MAX_LINES: i64 = 10;

/// An account's overview. Contains neither secrets nor data of visitors.
#[derive(Debug)]
pub struct Overview {
    account: Account,
    standing: SuspensionStatus,
    holder: Option<Identity>,
    usage: Usage,
    subdomains: Vec<Subdomain>,
    domains: Vec<Domain>,
    keys: Vec<Key>,
    counts: ResourceCounts,
}

/// Loads an account's overview. Returns `None` if the account doesn't exist.
pub(super) async fn load(conn: &mut Conn, account_id: Uuid) -> Result<Option<Overview>> {
    let Some(account) = accounts::find_account(conn, account_id).await? else { return Ok(None) };
    let Some(standing) = account_overview::find_suspension_status(conn, account_id).await? else {
        return Ok(None);
    };
    let Some(usage) = store::usage::find_usage(conn, account_id).await? else { return Ok(None) };
    Ok(Some(Overview {
        account,
        standing,
        holder: identities::find_holder(conn, account_id).await?,
        usage,
        subdomains: account_overview::list_subdomains(conn, account_id, MAX_LINES).await?,
        domains: account_overview::list_domains(conn, account_id, MAX_LINES).await?,
        keys: account_overview::list_keys(conn, account_id, MAX_LINES).await?,
        counts: account_overview::get_counts(conn, account_id).await?,
    }))
}

impl Overview {
    /// Returns the text. User-defined names are escaped, so that a terminal doesn't interpret control characters.
    #[must_use]
    pub fn page(&self, now: DateTime<Utc>) -> String {
        let mut page = String::new();
        let mut line = |label: &str, text: &str| {
            // Writing to a string can't fail.
            let _infallible = writeln!(page, "{label:<12}{text}");
        };
        let account = &self.account;
        line("account", &account.id.to_string());
        line("plan", account.plan.as_str());
        line("standing", &self.standing(now));
        line("belongs to", &holder(self.holder.as_ref()));
        line("name", &account.name.as_deref().map_or_else(|| "-".to_owned(), shown));
        line("created", &at(account.created_at));
        for (index, used) in self.used().into_iter().enumerate() {
            line(if index == 0 { "used" } else { "" }, &used);
        }
        let counts = &self.counts;
        line(
            "has",
            &format!(
                "{} pages, {} forms, {} submissions, {} analytics sites, {} folders",
                counts.pages, counts.forms, counts.submissions, counts.analytics_sites, counts.folders
            ),
        );
        line(
            "",
            &format!(
                "{} webhooks, {} deliveries waiting, {} failed, {} help requests",
                counts.webhooks, counts.pending_deliveries, counts.failed_deliveries, counts.help_requests
            ),
        );
        for subdomain in &self.subdomains {
            line(
                "subdomain",
                &match subdomain.kept_until {
                    None => format!("{}  {} pages", subdomain.name, subdomain.pages),
                    Some(until) => format!("{}  released, reserved until {}", subdomain.name, at(until)),
                },
            );
        }
        for domain in &self.domains {
            let error =
                domain.error.as_deref().map(|error| format!(": {}", shown(error))).unwrap_or_default();
            line("domain", &format!("{}  {}{error}", domain.domain, domain.status));
        }
        for key in &self.keys {
            line("key", &key_line(key, now));
        }
        let more = counts.keys - i64::try_from(self.keys.len()).unwrap_or(MAX_LINES);
        if more > 0 {
            line("", &format!("and {more} keys more"));
        }
        page
    }

    fn standing(&self, now: DateTime<Utc>) -> String {
        let claim = match (self.account.claimed_at, self.account.claim_deadline) {
            (Some(claimed), _) => format!("claimed {}", at(claimed)),
            (None, Some(deadline)) if deadline > now => {
                format!("unclaimed trial, deleted at {} unless claimed", at(deadline))
            }
            (None, _) => "expired unclaimed trial; it is being deleted".to_owned(),
        };
        let Some(since) = self.standing.suspended_at else { return claim };
        let reason =
            self.standing.suspension_reason.as_deref().map_or_else(|| "no reason given".to_owned(), shown);
        format!("{claim}; SUSPENDED since {}: {reason}", at(since))
    }

    fn used(&self) -> [String; 5] {
        let (usage, limits) = (&self.usage, self.account.plan.limits());
        let of = |used: i64, limit: i64, what: &str| match limit {
            UNLIMITED => format!("{used} {what}, unlimited"),
            _ => format!("{used} of {limit} {what}"),
        };
        [
            of(usage.projects, limits.projects, "projects"),
            of(usage.webhooks, limits.webhooks, "webhooks"),
            of(usage.subdomains, limits.subdomains, "subdomains"),
            of(usage.domains, limits.custom_domains, "custom domains"),
            of(usage.storage_bytes, limits.storage_bytes, "bytes stored"),
        ]
    }
}

/// Returns the owner's e-mail address and identity provider.
pub(super) fn holder(holder: Option<&Identity>) -> String {
    let Some(holder) = holder else { return "not claimed yet".to_owned() };
    let verified = if holder.email_verified { "" } else { " (not verified)" };
    let email = holder.email.as_deref().map_or_else(|| "no e-mail".to_owned(), shown);
    format!("{email}{verified}, {} at {}", shown(&holder.subject), shown(&holder.issuer))
}

fn key_line(key: &Key, now: DateTime<Utc>) -> String {
    let state = match (key.revoked_at, key.expires_at) {
        (Some(revoked), _) => format!(", revoked {}", at(revoked)),
        (None, Some(expires)) if expires <= now => format!(", expired {}", at(expires)),
        (None, Some(expires)) => format!(", expires {}", at(expires)),
        (None, None) => String::new(),
    };
    let used =
        key.last_used_at.map_or_else(|| "never used".to_owned(), |used| format!("last used {}", at(used)));
    format!("{}…  {}  {used}, created {}{state}", key.shown_prefix, shown(&key.label), at(key.created_at))
}

fn at(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M UTC").to_string()
}

/// Returns a user-defined text with its control characters escaped.
fn shown(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use domain::plans::Plan;

    use super::*;

    #[test]
    fn an_overview_is_one_screen_of_plain_text() {
        let noon: DateTime<Utc> = "2026-11-21T12:00:00Z".parse().unwrap();
        let hours = |hours: i64| noon + TimeDelta::hours(hours);
        let key = |label: &str, revoked_at: Option<DateTime<Utc>>| Key {
            shown_prefix: "st_live_a1B2".to_owned(),
            label: label.to_owned(),
            created_at: hours(-20),
            last_used_at: revoked_at.is_none().then(|| hours(-1)),
            expires_at: Some(hours(-2)),
            revoked_at,
        };
        let subdomain = |name: &str, kept_until| Subdomain { name: name.to_owned(), pages: 2, kept_until };
        let overview = Overview {
            account: Account {
                id: Uuid::from_u128(7),
                plan: Plan::Pro,
                name: Some("Shop\u{1b}[2J".to_owned()),
                timezone: "UTC".to_owned(),
                subdomain: Some("quiet-otter".to_owned()),
                email: None,
                claim_deadline: Some(hours(3)),
                claimed_at: None,
                suspended_at: Some(hours(-1)),
                created_at: hours(-21),
            },
            standing: SuspensionStatus {
                suspension_reason: Some("phishing".to_owned()),
                suspended_at: Some(hours(-1)),
            },
            holder: Some(Identity {
                id: Uuid::from_u128(8),
                issuer: "https://accounts.example".to_owned(),
                subject: "1234".to_owned(),
                email: Some("ana@example.com".to_owned()),
                email_verified: false,
                name: None,
            }),
            usage: Usage { projects: 3, webhooks: 1, domains: 1, subdomains: 1, storage_bytes: 5 },
            subdomains: vec![subdomain("quiet-otter", None), subdomain("old-otter", Some(hours(24)))],
            domains: vec![Domain {
                domain: "shop.example".to_owned(),
                status: "failed".to_owned(),
                error: Some("no record".to_owned()),
            }],
            keys: vec![key("ci", None), key("lost", Some(hours(-3)))],
            counts: ResourceCounts {
                keys: 12,
                pages: 2,
                forms: 1,
                submissions: 40,
                webhooks: 1,
                pending_deliveries: 0,
                failed_deliveries: 3,
                analytics_sites: 0,
                folders: 0,
                help_requests: 1,
            },
        };
        let page = "\
account     00000000-0000-0000-0000-000000000007
plan        pro
standing    unclaimed trial, deleted at 2026-11-21 15:00 UTC unless claimed; SUSPENDED since 2026-11-21 11:00 UTC: phishing
belongs to  ana@example.com (not verified), 1234 at https://accounts.example
name        Shop\\u{1b}[2J
created     2026-11-20 15:00 UTC
used        3 of 100 projects
            1 webhooks, unlimited
            1 subdomains, unlimited
            1 of 5 custom domains
            5 of 2147483648 bytes stored
has         2 pages, 1 forms, 40 submissions, 0 analytics sites, 0 folders
            1 webhooks, 0 deliveries waiting, 3 failed, 1 help requests
subdomain   quiet-otter  2 pages
subdomain   old-otter  released, reserved until 2026-11-22 12:00 UTC
domain      shop.example  failed: no record
key         st_live_a1B2…  ci  last used 2026-11-21 11:00 UTC, created 2026-11-20 16:00 UTC, expired 2026-11-21 10:00 UTC
key         st_live_a1B2…  lost  never used, created 2026-11-20 16:00 UTC, revoked 2026-11-21 09:00 UTC
            and 10 keys more
";
        assert_eq!(overview.page(noon), page);
    }
}
