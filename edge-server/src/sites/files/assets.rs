//! `assets.<sites domain>`: the assets of all accounts, under URLs with immutable content.
//!
//! A deployed image or font is addressed by its content and has the type of the name in its address, as published.
//!
//! The files of all accounts share this origin, so nothing here may run. A file that a browser would run is sent as text
//! to download. An SVG, which pages embed, is sent with a policy under which nothing in it runs or loads.

use std::time::{Duration, Instant};

use axum::response::Response;
use cache::StaleOnErrorCache;
use domain::media;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use service::Rng;
use store::read_pool::{ReadError, ReadPool};
use store::served_files::ServedFile;
use uuid::Uuid;

use super::file_body::FileBodyCache;
use crate::config::{Cache, weight};
use crate::metrics::CacheName;
use crate::request_id::request_id;
use crate::sites::error_responses::{lookup_failed, method_not_allowed, not_found, plain_error};

/// The subdomain of the sites domain. It is reserved.
pub(crate) const NAME: &str = "assets";
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";
const IMMUTABLE: &str = "public, max-age=31536000, immutable";
/// Enough for a hundred thousand files.
const MAX_BYTES: u64 = 32 << 20;

/// The address of an asset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Address {
    /// The id of an asset.
    Id(Uuid),
    /// The SHA-256 digest of a deployed image or font, and the content type of the name after it.
    Content([u8; 32], &'static str),
}

/// Assets by address. Addresses without an asset are cached too.
pub(crate) struct AssetCache {
    lookups: ReadPool,
    assets: StaleOnErrorCache<Address, Option<ServedFile>>,
}

impl AssetCache {
    pub(crate) fn new(lookups: ReadPool, config: &Cache) -> Self {
        let weigh = |_: &Address, file: &Option<ServedFile>| {
            weight(192 + file.as_ref().map_or(0, |file| file.filename.len() + file.content_type.len()))
        };
        Self { lookups, assets: CacheName::Assets.new_cache(config.bounds(MAX_BYTES), weigh) }
    }

    async fn find(&self, address: Address) -> Result<Option<ServedFile>, ReadError> {
        let look_up = self.lookups.query(async |conn| match address {
            Address::Id(id) => store::assets::find_served(conn, id).await,
            Address::Content(sha256, content_type) => {
                store::assets::find_served_by_digest(conn, &sha256, content_type).await
            }
        });
        Ok(self.assets.get(&address, Instant::now(), look_up).await?.value)
    }

    /// Answers a request on the asset host.
    pub(crate) async fn respond(&self, bodies: &FileBodyCache, request: &Parts, rng: &Rng) -> Response {
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return method_not_allowed();
        }
        let Some(address) = parse_address(request.uri.path()) else { return not_found() };
        let mut response = match self.find(address).await {
            Ok(Some(file)) if file.is_suspended => {
                plain_error(StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS, "This file's account is suspended.\n")
            }
            Ok(Some(file)) => bodies.respond(&file, request, response_headers(&file)).await,
            Ok(None) => not_found(),
            Err(error) => lookup_failed(error),
        };
        let headers = response.headers_mut();
        headers.insert(contract::edge::REQUEST_ID, request_id(&request.headers, rng));
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        headers.insert("cross-origin-resource-policy", HeaderValue::from_static("cross-origin"));
        response
    }

    /// Removes an asset. It may be deleted, so it must not be served stale.
    pub(crate) fn remove(&self, asset_id: Uuid) {
        self.assets.remove(&Address::Id(asset_id));
    }

    /// Removes all assets of an account: they must not be served stale.
    pub(crate) fn remove_account(&self, account_id: Uuid) {
        self.assets.remove_where(|_, file| file.as_ref().is_some_and(|file| file.account_id == account_id));
    }

    /// Invalidates the addresses without an asset: a deploy may have added them.
    pub(crate) fn invalidate_absent(&self) {
        self.assets.invalidate_where(|_, file| file.is_none());
    }

    /// Limits the age of entries while no signals arrive; `None` lifts the limit.
    pub(crate) fn limit_age(&self, limit: Option<Duration>) {
        self.assets.limit_age(limit);
    }

    pub(crate) fn invalidate_all(&self) {
        self.assets.mark_all_stale();
    }
}

/// Parses `/<id>/<name>` or `/<sha256>/<name>`. After an id the name is only informative; after a digest it is the name
/// of an image or a font.
fn parse_address(path: &str) -> Option<Address> {
    let (address, name) = path.strip_prefix('/')?.split_once('/')?;
    if address.len() == 64 {
        let mut sha256 = [0; 32];
        hex::decode_to_slice(address, &mut sha256).ok()?;
        let content_type = media::by_name(name);
        return media::is_image_or_font(content_type).then_some(Address::Content(sha256, content_type));
    }
    let id: Uuid = address.parse().ok()?;
    (id.hyphenated().to_string() == address).then_some(Address::Id(id))
}

fn response_headers(file: &ServedFile) -> HeaderMap {
    let (content_type, is_download) = media::shown_as(&file.content_type);
    let mut headers = HeaderMap::with_capacity(12);
    let octets = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(&content_type).unwrap_or(octets));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(IMMUTABLE));
    // Browsers do not show a PDF in a sandbox, and a PDF does not run in this origin.
    if file.content_type != "application/pdf" {
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    }
    if is_download {
        let name = utf8_percent_encode(&file.filename, NON_ALPHANUMERIC);
        let disposition = HeaderValue::from_str(&format!("attachment; filename*=UTF-8''{name}"));
        let bare = HeaderValue::from_static("attachment");
        headers.insert(header::CONTENT_DISPOSITION, disposition.unwrap_or(bare));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_addresses_by_id_and_by_digest() {
        let id = "0198b0c2-7d3e-7a31-9a0c-1f2e3d4c5b6a";
        assert_eq!(parse_address(&format!("/{id}/a.png")), Some(Address::Id(id.parse().unwrap())));
        let digest = "ab".repeat(32);
        for (name, content_type) in
            [("a.png", "image/png"), ("a%20b.SVG", "image/svg+xml"), ("a.woff2", "font/woff2")]
        {
            let address = Some(Address::Content([0xab; 32], content_type));
            assert_eq!(parse_address(&format!("/{digest}/{name}")), address, "{name}");
        }
        for name in ["", "a", "a.html", "a.js", "a.css", "a.png/b.js", "png"] {
            assert_eq!(parse_address(&format!("/{digest}/{name}")), None, "{name}");
        }
        for wrong in
            ["/", "/a.png", &format!("/{id}"), "/x/a.png", &format!("/{}/a.png", id.replace('-', ""))]
        {
            assert_eq!(parse_address(wrong), None, "{wrong}");
        }
    }
}
