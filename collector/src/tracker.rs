//! Serves the tracker, the script that counted pages load. `tracker.min.js` is minified from `tracker.js`; a browser test
//! checks that both behave the same.

use std::io::Write as _;
use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

const SCRIPT: &str = include_str!("tracker.min.js");

/// The headers of every response. Pages contain their tag for years, so the URL never changes; browsers revalidate after
/// an hour, so that a new version spreads soon.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CACHE_CONTROL, "public, max-age=3600"),
    (header::VARY, "accept-encoding"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // Some pages load scripts with CORS or under a cross-origin embedder policy.
    (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"),
];

/// One encoding of the script, with its own ETag.
struct Variant {
    body: Vec<u8>,
    etag: HeaderValue,
    encoding: Option<HeaderValue>,
}

static PLAIN: LazyLock<Variant> = LazyLock::new(|| Variant::new(SCRIPT.into(), None));
/// `None` if the compression fails, which it never does in memory.
static GZIP: LazyLock<Option<Variant>> = LazyLock::new(|| {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let body = encoder.write_all(SCRIPT.as_bytes()).and_then(|()| encoder.finish()).ok()?;
    Some(Variant::new(body, Some(HeaderValue::from_static("gzip"))))
});

impl Variant {
    fn new(body: Vec<u8>, encoding: Option<HeaderValue>) -> Self {
        let etag = format!("\"{:08x}-{}\"", crc32fast::hash(&body), body.len());
        // Digits in quotes are always a valid header value.
        let etag = HeaderValue::from_str(&etag).unwrap_or(HeaderValue::from_static("\"\""));
        Self { body, etag, encoding }
    }
}

/// `GET /script.js`, and `/_wr/script.js` on the hosts of sites.
pub(crate) async fn show(request: HeaderMap) -> Response {
    let variant = GZIP.as_ref().filter(|_| accepts_gzip(&request)).unwrap_or(&PLAIN);
    let mut headers =
        HeaderMap::from_iter(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    headers.insert(header::ETAG, variant.etag.clone());
    if matches_etag(&request, &variant.etag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/javascript; charset=utf-8"));
    if let Some(encoding) = &variant.encoding {
        headers.insert(header::CONTENT_ENCODING, encoding.clone());
    }
    (headers, variant.body.as_slice()).into_response()
}

/// Returns the items of a list header.
fn items<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// Whether gzip is listed with a weight above 0 (RFC 9110, 12.5.3). Its rank among other encodings does not matter.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    items(headers, &header::ACCEPT_ENCODING).any(|item| {
        let (coding, weight) = item.split_once(';').unwrap_or((item, "q=1"));
        let weight = weight.trim().trim_start_matches(['q', 'Q']).trim_start_matches('=');
        coding.trim().eq_ignore_ascii_case("gzip") && weight.parse().is_ok_and(|weight: f32| weight > 0.0)
    })
}

fn matches_etag(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    // A proxy may have turned the ETag into a weak one.
    items(headers, &header::IF_NONE_MATCH).any(|tag| tag == "*" || tag.trim_start_matches("W/") == *etag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn the_script_has_at_most_2_kb() {
        let bytes = GZIP.as_ref().unwrap().body.len();
        assert!(bytes <= 2_048, "{bytes}");
    }

    #[test]
    fn gzip_is_sent_only_if_accepted() {
        for accepted in ["gzip", "gzip, deflate, br, zstd", "br;q=1.0, GZIP;q=0.8", "gzip;q=1"] {
            assert!(accepts_gzip(&headers(header::ACCEPT_ENCODING, accepted)), "{accepted}");
        }
        for refused in ["", "identity", "br", "gzip;q=0", "gzip; q=0.0", "xgzip"] {
            assert!(!accepts_gzip(&headers(header::ACCEPT_ENCODING, refused)), "{refused}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn each_encoding_has_its_own_etag() {
        let (plain, gzip) = (&PLAIN.etag, &GZIP.as_ref().unwrap().etag);
        assert_ne!(plain, gzip);
        let matches = |value: &str| matches_etag(&headers(header::IF_NONE_MATCH, value), plain);
        let tag = plain.to_str().unwrap();
        assert!(
            matches(tag) && matches(&format!("W/{tag}")) && matches(&format!("\"x\", {tag}")) && matches("*")
        );
        assert!(!matches(gzip.to_str().unwrap()) && !matches("\"\""));
    }
}
