//! Which host shows which site, remembered; hosts without a site are remembered too.

use std::time::Instant;

use cache::{Fresh, Served};
use store::subdomains::Site;

use crate::config::{Cache, weight};

/// Enough for a million hosts; an entry is small.
const MAX_BYTES: u64 = 128 << 20;

/// The hosts known so far, by subdomain name.
pub(crate) struct Sites {
    db: store::Db,
    known: Fresh<String, Option<Site>>,
}

impl Sites {
    pub(crate) fn new(db: store::Db, config: &Cache) -> Self {
        let weigh = |name: &String, _: &Option<Site>| weight(128 + name.len());
        Self { db, known: Fresh::new(config.bounds(MAX_BYTES), weigh) }
    }

    /// The site under a subdomain's name.
    ///
    /// # Errors
    /// It isn't known and Postgres is away.
    pub(crate) async fn find(&self, name: &str) -> Result<Served<Option<Site>>, store::Error> {
        self.known
            .get(&name.to_owned(), Instant::now(), async {
                let mut conn = store::acquire(&self.db).await?;
                store::subdomains::find_site_by_name(&mut conn, name).await
            })
            .await
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
