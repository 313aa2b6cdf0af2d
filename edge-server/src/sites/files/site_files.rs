//! Files of a deployed site, on its own host and at the paths they had in its zip, so that modules, chunks and
//! requests by path find each other. They are the site's own and may run there.

use std::borrow::Cow;
use std::time::Instant;

use axum::response::Response;
use cache::{Served, StaleOnErrorCache};
use domain::media;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, header};
use store::served_files::ServedFile;
use store::subdomains::Site;
use uuid::Uuid;

use crate::config::{Cache, weight};
use crate::read_pool::{ReadError, ReadPool};
use crate::sites::files::file_body;
use crate::sites::site_handler::cannot_say;
use crate::state::EdgeState;

/// Enough for a quarter of a million paths.
const MAX_BYTES: u64 = 64 << 20;
/// Longer ones are not in any zip.
const PATH_BYTES_MAX: usize = 1_024;

/// The files known so far, by site and path; paths without one too.
pub(crate) struct Files {
    lookups: ReadPool,
    known: StaleOnErrorCache<(Uuid, String), Option<ServedFile>>,
}

impl Files {
    pub(crate) fn new(lookups: ReadPool, config: &Cache) -> Self {
        let weigh = |key: &(Uuid, String), file: &Option<ServedFile>| {
            let about = file.as_ref().map_or(0, |file| file.filename.len() + file.content_type.len() + 96);
            weight(192 + key.1.len() + about)
        };
        Self { lookups, known: StaleOnErrorCache::new(config.bounds(MAX_BYTES), weigh) }
    }

    async fn find(&self, subdomain_id: Uuid, path: &str) -> Result<Served<Option<ServedFile>>, ReadError> {
        let find =
            async |conn: &mut store::Conn| store::deploys::files::find_file(conn, subdomain_id, path).await;
        self.known.get(&(subdomain_id, path.to_owned()), Instant::now(), self.lookups.query(find)).await
    }

    /// Asks again about a site's files.
    pub(crate) fn forget_site(&self, subdomain_id: Uuid) {
        self.known.invalidate_where(|(site, _), _| *site == subdomain_id);
    }

    /// Lets go of a site's files for good: they must not even be served stale.
    pub(crate) fn drop_site(&self, subdomain_id: Uuid) {
        self.known.remove_where(|(site, _), _| *site == subdomain_id);
    }

    /// Asks again about every file.
    pub(crate) fn forget_all(&self) {
        self.known.mark_all_stale();
    }
}

/// The answer to a request for a file of the site; none if it has no file at that path, or the request is neither
/// GET nor HEAD.
pub(crate) async fn serve(edge: &EdgeState, site: &Site, asked: &Parts) -> Option<Response> {
    if !matches!(asked.method, Method::GET | Method::HEAD) {
        return None;
    }
    let path = path_of(asked.uri.path())?;
    let file = match edge.files.find(site.subdomain_id, &path).await {
        Ok(found) => found.value?,
        Err(error) => return Some(cannot_say(error)),
    };
    Some(file_body::send(edge, &file, asked, headers_of(&file, site)).await)
}

/// The path of a file as it stands in a zip: without its first slash, its escapes read.
fn path_of(path: &str) -> Option<Cow<'_, str>> {
    let path = path.strip_prefix('/')?;
    if path.is_empty() || path.len() > PATH_BYTES_MAX || path.contains("%2f") || path.contains("%2F") {
        return None;
    }
    let path = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
    (!path.contains('\0')).then_some(path)
}

fn headers_of(file: &ServedFile, site: &Site) -> HeaderMap {
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

/// What a page loads even where it is sandboxed, and so has no origin: styles, scripts, fonts and images.
fn is_shared(essence: &str) -> bool {
    media::is_image_or_font(essence) || matches!(essence, "text/css" | "text/javascript" | "application/wasm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_it_stands_in_the_zip() {
        assert_eq!(path_of("/assets/a%20b.js").as_deref(), Some("assets/a b.js"));
        assert_eq!(path_of("/gr%C3%B6%C3%9Fe.css").as_deref(), Some("größe.css"));
        for none in ["/", "", "/a%2fb", "/%ff", "/a%00", &format!("/{}", "a".repeat(2_000))] {
            assert_eq!(path_of(none), None, "{none}");
        }
    }
}
