//! The script that counted pages load. `tracker.js` is what people read; browsers get `tracker.min.js`, which the
//! minifier made of it, and a browser's story compares the two.

use std::io::Write as _;
use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

const SCRIPT: &str = include_str!("tracker.min.js");

/// The headers of every answer. Pages keep their tag for years, so the address never changes; browsers ask again after
/// an hour, so that a new script is everywhere soon.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CACHE_CONTROL, "public, max-age=3600"),
    (header::VARY, "accept-encoding"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // For pages that insist on either.
    (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"),
];

/// One form of the script, with its own tag.
struct Variant {
    body: Vec<u8>,
    etag: HeaderValue,
    coding: Option<HeaderValue>,
}

static PLAIN: LazyLock<Variant> = LazyLock::new(|| Variant::new(SCRIPT.into(), None));
/// None if it can't be compressed, which writing into memory never shows.
static GZIP: LazyLock<Option<Variant>> = LazyLock::new(|| {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let body = encoder.write_all(SCRIPT.as_bytes()).and_then(|()| encoder.finish()).ok()?;
    Some(Variant::new(body, Some(HeaderValue::from_static("gzip"))))
});

impl Variant {
    fn new(body: Vec<u8>, coding: Option<HeaderValue>) -> Self {
        let etag = format!("\"{:08x}-{}\"", crc32fast::hash(&body), body.len());
        // Digits in quotes are always a header value.
        let etag = HeaderValue::from_str(&etag).unwrap_or(HeaderValue::from_static("\"\""));
        Self { body, etag, coding }
    }
}

/// `GET /script.js`, and `/_wr/script.js` on the hosts of sites.
pub(crate) async fn show(asked: HeaderMap) -> Response {
    let variant = GZIP.as_ref().filter(|_| takes_gzip(&asked)).unwrap_or(&PLAIN);
    let mut headers =
        HeaderMap::from_iter(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    headers.insert(header::ETAG, variant.etag.clone());
    if has(&asked, &variant.etag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/javascript; charset=utf-8"));
    if let Some(coding) = &variant.coding {
        headers.insert(header::CONTENT_ENCODING, coding.clone());
    }
    (headers, variant.body.as_slice()).into_response()
}

/// The items of a header that is a list.
fn items<'a>(asked: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = asked.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// Whether gzip is named, and not with a weight of nothing (RFC 9110, 12.5.3). Any request beside it is no matter here.
fn takes_gzip(asked: &HeaderMap) -> bool {
    items(asked, &header::ACCEPT_ENCODING).any(|item| {
        let (coding, weight) = item.split_once(';').unwrap_or((item, "q=1"));
        let weight = weight.trim().trim_start_matches(['q', 'Q']).trim_start_matches('=');
        coding.trim().eq_ignore_ascii_case("gzip") && weight.parse().is_ok_and(|weight: f32| weight > 0.0)
    })
}

fn has(asked: &HeaderMap, etag: &HeaderValue) -> bool {
    // Between us and the browser somebody may have made it weak.
    items(asked, &header::IF_NONE_MATCH).any(|tag| tag == "*" || tag.trim_start_matches("W/") == *etag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn pages_load_at_most_2_kb() {
        let bytes = GZIP.as_ref().unwrap().body.len();
        assert!(bytes <= 2_048, "{bytes}");
    }

    #[test]
    fn gzip_is_sent_to_whoever_takes_it() {
        for takes in ["gzip", "gzip, deflate, br, zstd", "br;q=1.0, GZIP;q=0.8", "gzip;q=1"] {
            assert!(takes_gzip(&asking(header::ACCEPT_ENCODING, takes)), "{takes}");
        }
        for refuses in ["", "identity", "br", "gzip;q=0", "gzip; q=0.0", "xgzip"] {
            assert!(!takes_gzip(&asking(header::ACCEPT_ENCODING, refuses)), "{refuses}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn each_form_is_known_by_its_own_tag() {
        let (plain, gzip) = (&PLAIN.etag, &GZIP.as_ref().unwrap().etag);
        assert_ne!(plain, gzip);
        let had = |value: &str| has(&asking(header::IF_NONE_MATCH, value), plain);
        let tag = plain.to_str().unwrap();
        assert!(had(tag) && had(&format!("W/{tag}")) && had(&format!("\"x\", {tag}")) && had("*"));
        assert!(!had(gzip.to_str().unwrap()) && !had("\"\""));
    }
}
