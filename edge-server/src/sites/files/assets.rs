//! `assets.<sites domain>`: what accounts keep for their pages, under addresses whose content never changes.
//!
//! Any account's files lie under this one origin, so nothing here may run: what a browser would run is handed out as
//! text to be saved, and an SVG, which pages embed, is sent with a policy that lets nothing in it run or load.

use std::time::Instant;

use axum::response::{IntoResponse, Response};
use cache::StaleOnErrorCache;
use domain::media;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use store::served_files::ServedFile;
use uuid::Uuid;

use crate::config::{Cache, weight};
use crate::read_pool::{ReadError, ReadPool};
use crate::sites::files::file_body;
use crate::sites::page_response::request_id;
use crate::sites::site_handler::{cannot_say, nothing, refuse};
use crate::state::EdgeState;

/// The name below the sites domain. No site can have it.
pub(crate) const NAME: &str = "assets";
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";
const FOR_GOOD: &str = "public, max-age=31536000, immutable";
/// Enough for a hundred thousand files.
const MAX_BYTES: u64 = 32 << 20;

/// How a file is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Address {
    /// An asset, by its id.
    Id(Uuid),
    /// A deployed image or font, by the digest of its bytes.
    Content([u8; 32]),
}

/// The files known so far; addresses without one too.
pub(crate) struct Assets {
    lookups: ReadPool,
    known: StaleOnErrorCache<Address, Option<ServedFile>>,
}

impl Assets {
    pub(crate) fn new(lookups: ReadPool, config: &Cache) -> Self {
        let weigh = |_: &Address, file: &Option<ServedFile>| {
            weight(192 + file.as_ref().map_or(0, |file| file.filename.len() + file.content_type.len()))
        };
        Self { lookups, known: StaleOnErrorCache::new(config.bounds(MAX_BYTES), weigh) }
    }

    async fn find(&self, address: Address) -> Result<Option<ServedFile>, ReadError> {
        let look_up = self.lookups.query(async |conn| match address {
            Address::Id(id) => store::assets::find_served(conn, id).await,
            Address::Content(sha256) => store::assets::find_served_by_digest(conn, &sha256).await,
        });
        Ok(self.known.get(&address, Instant::now(), look_up).await?.value)
    }

    /// Asks again before the asset is shown next. It may be gone: what was known isn't even shown stale.
    pub(crate) fn forget(&self, asset_id: Uuid) {
        self.known.remove(&Address::Id(asset_id));
    }

    /// Asks again about an account's files, none of which is shown before.
    pub(crate) fn forget_account(&self, account_id: Uuid) {
        self.known.remove_where(|_, file| file.as_ref().is_some_and(|file| file.account_id == account_id));
    }

    /// Asks again about deployed files there were none of: a deploy may have brought them.
    pub(crate) fn forget_absent(&self) {
        self.known.invalidate_where(|_, file| file.is_none());
    }

    /// Asks again about every file.
    pub(crate) fn forget_all(&self) {
        self.known.mark_all_stale();
    }
}

/// Answers a request on the host of assets.
pub(crate) async fn serve(edge: &EdgeState, asked: &Parts) -> Response {
    if !matches!(asked.method, Method::GET | Method::HEAD) {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")]).into_response();
    }
    let Some(address) = address_at(asked.uri.path()) else { return nothing() };
    let mut response = match edge.assets.find(address).await {
        Ok(Some(file)) if file.is_suspended => {
            refuse(StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS, "This file's account is suspended.\n")
        }
        Ok(Some(file)) => file_body::send(edge, &file, asked, headers_of(&file)).await,
        Ok(None) => nothing(),
        Err(error) => cannot_say(error),
    };
    let headers = response.headers_mut();
    headers.insert(contract::edge::REQUEST_ID, request_id(&asked.headers, &edge.rng));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("cross-origin"));
    response
}

/// `/<id>/<name>` or `/<sha256>/<name>`. The name is for people.
fn address_at(path: &str) -> Option<Address> {
    let (address, _name) = path.strip_prefix('/')?.split_once('/')?;
    if address.len() == 64 {
        let mut sha256 = [0; 32];
        hex::decode_to_slice(address, &mut sha256).ok()?;
        return Some(Address::Content(sha256));
    }
    let id: Uuid = address.parse().ok()?;
    (id.hyphenated().to_string() == address).then_some(Address::Id(id))
}

fn headers_of(file: &ServedFile) -> HeaderMap {
    let (content_type, is_to_be_saved) = media::shown_as(&file.content_type);
    let mut headers = HeaderMap::with_capacity(12);
    let octets = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(&content_type).unwrap_or(octets));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(FOR_GOOD));
    // A sandbox keeps browsers from showing a PDF, and a PDF is no document of this origin.
    if file.content_type != "application/pdf" {
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    }
    if is_to_be_saved {
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
    fn a_file_has_one_address_by_id_and_one_by_content() {
        let id = "0198b0c2-7d3e-7a31-9a0c-1f2e3d4c5b6a";
        assert_eq!(address_at(&format!("/{id}/a.png")), Some(Address::Id(id.parse().unwrap())));
        let digest = "ab".repeat(32);
        assert_eq!(address_at(&format!("/{digest}/a.png")), Some(Address::Content([0xab; 32])));
        for wrong in
            ["/", "/a.png", &format!("/{id}"), "/x/a.png", &format!("/{}/a.png", id.replace('-', ""))]
        {
            assert_eq!(address_at(wrong), None, "{wrong}");
        }
    }
}
