//! Which host shows which site, remembered; hosts without a site are remembered too.

use std::time::Instant;

use cache::{Fresh, Served};
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

    /// The site under a subdomain's name.
    ///
    /// # Errors
    /// It isn't known and Postgres is away.
    pub(crate) async fn find(&self, name: &str) -> Result<Served<Option<Site>>, NoAnswer> {
        let look_up = async {
            // Visitors may write anything: what can be no name is not asked about.
            if !could_be_a_name(name) {
                return Ok(None);
            }
            self.lookups.ask(async |conn| store::subdomains::find_site_by_name(conn, name).await).await
        };
        self.known.get(&name.to_owned(), Instant::now(), look_up).await
    }

    /// Asks again before the host is served next.
    pub(crate) fn forget(&self, name: &str) {
        self.known.invalidate(&name.to_owned());
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
