//! `/p/<slug>` on the base host: a page without its site's name.
//!
//! User HTML must never share an origin with the API: a page here could call it with the visitor's cookie.
//! So the answer is sandboxed, which gives it an origin of its own.

use std::time::Instant;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use cache::StaleOnErrorCache;
use http::{HeaderMap, HeaderValue, Method, header};
use web::{Path, Problem};

use crate::config::{Cache, weight};
use crate::read_pool::{ReadError, ReadPool};
use crate::sites::classify_host::SiteHost;
use crate::sites::site_handler;
use crate::state::EdgeState;

const SANDBOX: &str = "sandbox allow-scripts allow-forms allow-popups allow-modals";
/// Enough for half a million addresses.
const MAX_BYTES: u64 = 64 << 20;

/// Which site's page holds a bare address, as far as it was asked for.
pub(crate) struct ShortUrlCache {
    lookups: ReadPool,
    known: StaleOnErrorCache<String, Option<String>>,
}

impl ShortUrlCache {
    pub(crate) fn new(lookups: ReadPool, config: &Cache) -> Self {
        let weigh = |slug: &String, _: &Option<String>| weight(128 + slug.len());
        Self { lookups, known: StaleOnErrorCache::new(config.bounds(MAX_BYTES), weigh) }
    }

    /// The name of the site whose page holds the address.
    async fn find(&self, slug: &str) -> Result<Option<String>, ReadError> {
        let look_up = self.lookups.query(async |conn| store::pages::find_short_address(conn, slug).await);
        Ok(self.known.get(&slug.to_owned(), Instant::now(), look_up).await?.value)
    }

    /// Asks again before the address is served next.
    pub(crate) fn forget(&self, slug: &str) {
        self.known.invalidate(&slug.to_owned());
    }

    /// Asks again about every address.
    pub(crate) fn forget_all(&self) {
        self.known.mark_all_stale();
    }
}

pub(crate) async fn show(
    State(edge): State<EdgeState>,
    slug: Result<Path<String>, Problem>,
    RawQuery(query): RawQuery,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let Ok(Path(slug)) = slug else { return site_handler::nothing() };
    if !domain::pages::check_slug(&slug).is_empty() {
        return site_handler::nothing();
    }
    let found = match holder(&edge, &slug, query.as_deref().unwrap_or_default()).await {
        Ok(Some(site)) => {
            site_handler::find(&edge, SiteHost::Subdomain(&site), &slug).await.map(|mut found| {
                let name = found.site.moved_to.as_deref().unwrap_or(&site);
                found.page.value = found.page.value.away_from(&edge.addresses.page(name, &slug));
                found
            })
        }
        Ok(None) => return site_handler::nothing(),
        Err(error) => return site_handler::cannot_say(error),
    };
    let mut response = match found {
        Ok(found) => site_handler::answer(&edge, &method, &headers, &found),
        Err(refusal) => return refusal,
    };
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    response
}

/// The site named by `?site=`, or the one that holds the bare address. Whatever else stands in the query is
/// not ours: links are passed on with all kinds of tracking behind them.
async fn holder(edge: &EdgeState, slug: &str, query: &str) -> Result<Option<String>, ReadError> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    match pairs.find(|(name, _)| name == "site") {
        Some((_, site)) => Ok(Some(site.into_owned())),
        None => edge.holders.find(slug).await,
    }
}
