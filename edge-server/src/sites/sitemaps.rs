//! What every site has for search engines, unless it brings its own: `robots.txt` and `sitemap.xml`.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use cache::StaleOnErrorCache;
use chrono::SecondsFormat;
use http::header;
use uuid::Uuid;

use crate::config::{Cache, weight};
use crate::read_pool::{ReadError, ReadPool};
use crate::sites::classify_host::SiteHost;
use crate::state::EdgeState;

/// Most addresses a site map may have (sitemaps.org).
const ADDRESSES_MAX: i64 = 50_000;
/// Enough for some thousand small sites; crawlers come seldom.
const MAX_BYTES: u64 = 16 << 20;

/// The site maps asked for so far, by site and by the origin they are written for.
pub(crate) struct SitemapCache {
    lookups: ReadPool,
    kept: StaleOnErrorCache<(Uuid, Arc<str>), Bytes>,
}

impl SitemapCache {
    pub(crate) fn new(lookups: ReadPool, config: &Cache) -> Self {
        let weigh = |key: &(Uuid, Arc<str>), map: &Bytes| weight(256 + key.1.len() + map.len());
        Self { lookups, kept: StaleOnErrorCache::new(config.bounds(MAX_BYTES), weigh) }
    }

    async fn find(&self, subdomain_id: Uuid, origin: String) -> Result<Bytes, ReadError> {
        let key = (subdomain_id, Arc::from(origin));
        let write = async {
            let list = async |conn: &mut store::Conn| {
                store::sitemaps::list_published_pages(conn, subdomain_id, ADDRESSES_MAX).await
            };
            Ok::<_, ReadError>(written(&key.1, &self.lookups.query(list).await?))
        };
        Ok(self.kept.get(&key, Instant::now(), write).await?.value)
    }

    /// Asks again before the site's map is shown next.
    pub(crate) fn forget(&self, subdomain_id: Uuid) {
        self.kept.invalidate_where(|(site, _), _| *site == subdomain_id);
    }

    /// Asks again about all.
    pub(crate) fn forget_all(&self) {
        self.kept.mark_all_stale();
    }
}

/// `/sitemap.xml`.
///
/// # Errors
/// It isn't kept and Postgres is away.
pub(crate) async fn show(
    edge: &EdgeState,
    host: SiteHost<'_>,
    subdomain_id: Uuid,
) -> Result<Response, ReadError> {
    let map = edge.site_maps.find(subdomain_id, origin(edge, host)).await?;
    Ok(([(header::CONTENT_TYPE, "application/xml"), (header::CACHE_CONTROL, "no-cache")], Body::from(map))
        .into_response())
}

/// `/robots.txt`. A trial's pages must be read to be seen to say `noindex`, so it doesn't forbid that; but neither
/// does it point to a map of them.
pub(crate) fn robots(edge: &EdgeState, host: SiteHost<'_>, claimed: bool) -> Response {
    let map =
        if claimed { format!("\nSitemap: {}/sitemap.xml\n", origin(edge, host)) } else { String::new() };
    let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::CACHE_CONTROL, "no-cache")];
    (headers, format!("User-agent: *\nAllow: /\n{map}")).into_response()
}

fn origin(edge: &EdgeState, host: SiteHost<'_>) -> String {
    match host {
        SiteHost::Subdomain(name) => edge.addresses.site(name),
        SiteHost::Custom(host) => edge.addresses.at(host),
    }
}

/// Nothing in it needs escaping: hosts and slugs are letters, digits, dots, hyphens and slashes.
fn written(origin: &str, pages: &[store::sitemaps::PublishedPage]) -> Bytes {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    xml.push_str("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n");
    for page in pages {
        let path = domain::pages::path_of(&page.slug);
        let edited = page.updated_at.to_rfc3339_opts(SecondsFormat::Secs, true);
        let _a_string_takes_all =
            writeln!(xml, "<url><loc>{origin}{path}</loc><lastmod>{edited}</lastmod></url>");
    }
    xml.push_str("</urlset>\n");
    xml.into()
}
