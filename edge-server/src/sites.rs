//! Which host shows which site, or leads to one; remembered, and hosts without a site too.

use std::time::Instant;

use cache::{Fresh, Served};
use chrono::{DateTime, Utc};
use store::subdomains::Site;

use crate::config::{Cache, weight};
use crate::lookups::{LookUps, NoAnswer};

/// Enough for a million hosts; an entry is small.
const MAX_BYTES: u64 = 128 << 20;

/// The hosts known so far, by subdomain name.
pub(crate) struct Sites {
    lookups: LookUps,
    known: Fresh<String, Option<Site>>,
}

impl Sites {
    pub(crate) fn new(lookups: LookUps, config: &Cache) -> Self {
        let weigh = |name: &String, _: &Option<Site>| weight(128 + name.len());
        Self { lookups, known: Fresh::new(config.bounds(MAX_BYTES), weigh) }
    }

    /// The site under a subdomain's name, or under one that was given up and is still kept for it.
    ///
    /// # Errors
    /// It isn't known and Postgres is away.
    pub(crate) async fn find(
        &self,
        name: &str,
        now: DateTime<Utc>,
    ) -> Result<Served<Option<Site>>, NoAnswer> {
        let look_up = async {
            // Visitors may write anything: what can be no name is not asked about.
            if !could_be_a_name(name) {
                return Ok(None);
            }
            self.lookups.ask(async |conn| store::subdomains::find_site_by_name(conn, name, now).await).await
        };
        self.known.get(&name.to_owned(), Instant::now(), look_up).await
    }

    /// Asks again before the host is served next. What was known is not even served stale: this is how the edge
    /// hears that a site was suspended, or has ended.
    pub(crate) fn forget(&self, name: &str) {
        self.known.remove(&name.to_owned());
    }

    /// Asks again about every host.
    pub(crate) fn forget_all(&self) {
        self.known.expire_all();
    }
}

/// Reserved names may be in use: whoever runs the system may have given one away.
fn could_be_a_name(name: &str) -> bool {
    domain::subdomains::check("host", name).iter().all(|complaint| complaint.code == "reserved")
}
