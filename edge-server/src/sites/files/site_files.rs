//! Files of a deployed site, served on its host at their paths in the zip, so that modules, chunks and requests by path
//! resolve. Scripts among them may run: the origin is the site's own.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use axum::response::Response;
use cache::{Served, StaleOnErrorCache};
use domain::media;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};
use store::read_pool::{ReadError, ReadPool};
use store::served_files::ServedFile;
use store::subdomains::Site;
use uuid::Uuid;

use super::file_body::FileBodyCache;
use crate::config::{Cache, weight};
use crate::sites::error_responses::lookup_failed;

/// Enough for a quarter of a million paths.
const MAX_BYTES: u64 = 64 << 20;
/// Longer paths are in no zip.
const MAX_PATH_BYTES: usize = 1_024;

/// Files by site and path. Paths without a file are cached too.
pub(crate) struct FileCache {
    lookups: ReadPool,
    files: StaleOnErrorCache<(Uuid, String), Option<ServedFile>>,
}

impl FileCache {
    pub(crate) fn new(lookups: ReadPool, config: &Cache) -> Self {
        let weigh = |key: &(Uuid, String), file: &Option<ServedFile>| {
            let details = file.as_ref().map_or(0, |file| file.filename.len() + file.content_type.len() + 96);
            weight(192 + key.1.len() + details)
        };
        Self { lookups, files: StaleOnErrorCache::new(config.bounds(MAX_BYTES), weigh) }
    }

    async fn find(&self, subdomain_id: Uuid, path: &str) -> Result<Served<Option<ServedFile>>, ReadError> {
        let find =
            async |conn: &mut store::Conn| store::deploys::files::find_file(conn, subdomain_id, path).await;
        self.files.get(&(subdomain_id, path.to_owned()), Instant::now(), self.lookups.query(find)).await
    }

    /// Returns the response to a GET or HEAD request for a file of the site; `None` if there is no file at the path.
    pub(crate) async fn respond(
        &self,
        bodies: &FileBodyCache,
        site: &Site,
        request: &Parts,
    ) -> Option<Response> {
        let path = zip_path(request.uri.path())?;
        let file = match self.find(site.subdomain_id, &path).await {
            Ok(found) => found.value?,
            Err(error) => return Some(lookup_failed(error)),
        };
        Some(bodies.respond(&file, request, response_headers(&file, site)).await)
    }

    pub(crate) fn invalidate_site(&self, subdomain_id: Uuid) {
        self.files.invalidate_where(|(site, _), _| *site == subdomain_id);
    }

    /// Removes a site's files: they must not be served stale.
    pub(crate) fn remove_site(&self, subdomain_id: Uuid) {
        self.files.remove_where(|(site, _), _| *site == subdomain_id);
    }

    /// Limits the age of entries while no signals arrive; `None` lifts the limit.
    pub(crate) fn limit_age(&self, limit: Option<Duration>) {
        self.files.limit_age(limit);
    }

    pub(crate) fn invalidate_all(&self) {
        self.files.mark_all_stale();
    }
}

/// Returns a file's path in the zip: without the leading slash, percent-decoded.
fn zip_path(path: &str) -> Option<Cow<'_, str>> {
    let path = path.strip_prefix('/')?;
    if path.is_empty() || path.len() > MAX_PATH_BYTES || path.contains("%2f") || path.contains("%2F") {
        return None;
    }
    let path = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
    (!path.contains('\0')).then_some(path)
}

fn response_headers(file: &ServedFile, site: &Site) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(10);
    let octets = HeaderValue::from_static("application/octet-stream");
    let content_type = HeaderValue::from_str(&media::with_charset(&file.content_type)).unwrap_or(octets);
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=0, must-revalidate"));
    if is_shared(&file.content_type) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    }
    if !site.claimed {
        headers.insert("x-robots-tag", HeaderValue::from_static("noindex"));
    }
    headers
}

/// Returns whether pages of any origin may load the file. A sandboxed page has no origin, and must still load its styles,
/// scripts, fonts and images.
fn is_shared(essence: &str) -> bool {
    media::is_image_or_font(essence) || matches!(essence, "text/css" | "text/javascript" | "application/wasm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_a_path_as_in_the_zip() {
        assert_eq!(zip_path("/assets/a%20b.js").as_deref(), Some("assets/a b.js"));
        assert_eq!(zip_path("/gr%C3%B6%C3%9Fe.css").as_deref(), Some("größe.css"));
        for none in ["/", "", "/a%2fb", "/%ff", "/a%00", &format!("/{}", "a".repeat(2_000))] {
            assert_eq!(zip_path(none), None, "{none}");
        }
    }
}
