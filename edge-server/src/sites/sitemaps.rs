//! `robots.txt` and `sitemap.xml`, generated for sites that do not deploy their own.

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use cache::StaleOnErrorCache;
use chrono::SecondsFormat;
use domain::addresses::Addresses;
use domain::static_sites::address::{FALLBACK_FILE, NOT_FOUND_FILE, listed_address};
use domain::static_sites::site_path::name_of;
use http::header;
use store::read_pool::{ReadError, ReadPool};
use store::sitemaps::PublishedPage;
use uuid::Uuid;

use super::classify_host::SiteHost;
use crate::config::{Cache, weight};
use crate::cpu_work::{CpuWork, Tenant};
use crate::metrics::CacheName;

/// Most URLs in a sitemap (sitemaps.org).
const MAX_URLS: i64 = 50_000;
/// About the size of a URL's entry.
const URL_BYTES: usize = 128;
/// Enough for some thousand small sites; crawlers come rarely.
const MAX_BYTES: u64 = 16 << 20;

/// Generated sitemaps, by site and by the origin of their URLs.
pub(crate) struct SitemapCache {
    lookups: ReadPool,
    sitemaps: StaleOnErrorCache<(Uuid, Arc<str>), Bytes>,
    cpu: CpuWork,
}

impl SitemapCache {
    pub(crate) fn new(lookups: ReadPool, config: &Cache, cpu: CpuWork) -> Self {
        let weigh = |key: &(Uuid, Arc<str>), xml: &Bytes| weight(256 + key.1.len() + xml.len());
        Self { lookups, sitemaps: CacheName::Sitemaps.new_cache(config.bounds(MAX_BYTES), weigh), cpu }
    }

    /// Returns the response for `/sitemap.xml`.
    pub(crate) async fn respond(
        &self,
        addresses: &Addresses,
        host: SiteHost<'_>,
        subdomain_id: Uuid,
    ) -> Result<Response, ReadError> {
        let key = (subdomain_id, Arc::from(origin(addresses, host)));
        let generate = async {
            let list = async |conn: &mut store::Conn| {
                store::sitemaps::list_published_pages(conn, subdomain_id, MAX_URLS).await
            };
            let pages = self.lookups.query(list).await?;
            let (tenant, bytes) = (Tenant::Site(subdomain_id), pages.len() * URL_BYTES);
            let origin = Arc::clone(&key.1);
            let written = self.cpu.run(tenant, bytes, move || sitemap_xml(&origin, &pages));
            written.await.map_err(|_busy| ReadError::Unavailable)
        };
        let xml = self.sitemaps.get(&key, Instant::now(), generate).await?.value;
        let headers = [(header::CONTENT_TYPE, "application/xml"), (header::CACHE_CONTROL, "no-cache")];
        Ok((headers, Body::from(xml)).into_response())
    }

    pub(crate) fn invalidate(&self, subdomain_id: Uuid) {
        self.sitemaps.invalidate_where(|(site, _), _| *site == subdomain_id);
    }

    /// Limits the age of entries while no signals arrive; `None` lifts the limit.
    pub(crate) fn limit_age(&self, limit: Option<Duration>) {
        self.sitemaps.limit_age(limit);
    }

    pub(crate) fn invalidate_all(&self) {
        self.sitemaps.mark_all_stale();
    }
}

/// Returns whether a file at this path is generated for sites without one.
pub(crate) fn is_generated(path: &str) -> bool {
    matches!(path, "robots.txt" | "sitemap.xml")
}

/// Returns the response for `/robots.txt`. It allows crawling even for unclaimed sites, because a crawler must fetch their
/// pages to see `noindex`; but it names no sitemap for them. Nothing leads a crawler to a preview.
pub(crate) fn robots(addresses: &Addresses, host: SiteHost<'_>, is_claimed: bool) -> Response {
    let rule = if matches!(host, SiteHost::Preview(_)) { "Disallow" } else { "Allow" };
    let sitemap = if is_claimed {
        format!("\nSitemap: {}/sitemap.xml\n", origin(addresses, host))
    } else {
        String::new()
    };
    let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::CACHE_CONTROL, "no-cache")];
    (headers, format!("User-agent: *\n{rule}: /\n{sitemap}")).into_response()
}

fn origin(addresses: &Addresses, host: SiteHost<'_>) -> String {
    match host {
        SiteHost::Subdomain(name) => addresses.site(name),
        SiteHost::Preview(preview) => addresses.site(preview.label),
        SiteHost::Custom(host) => addresses.at(host),
    }
}

/// Nothing needs escaping:
/// hosts and slugs consist of letters, digits, dots, hyphens and slashes, and addresses are percent-encoded.
fn sitemap_xml(origin: &str, pages: &[PublishedPage]) -> Bytes {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    xml.push_str("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n");
    for page in pages {
        let Some(address) = address_of(page) else { continue };
        let edited = page.updated_at.to_rfc3339_opts(SecondsFormat::Secs, true);
        let _infallible = writeln!(xml, "<url><loc>{origin}{address}</loc><lastmod>{edited}</lastmod></url>");
    }
    xml.push_str("</urlset>\n");
    xml.into()
}

/// Returns the address at which a page is listed; `None` if it only answers other addresses.
fn address_of(page: &PublishedPage) -> Option<String> {
    match (&page.path, &page.slug) {
        (Some(path), _) => {
            let is_error_page = matches!(name_of(path), NOT_FOUND_FILE | FALLBACK_FILE);
            (!is_error_page).then(|| listed_address(path))
        }
        (None, Some(slug)) => Some(domain::pages::path_of(slug)),
        (None, None) => None,
    }
}
