//! Parses `Accept-Encoding` without allocating.

use http::{HeaderMap, HeaderValue, header};

/// The supported content codings, in the order of the bits of [`Accepted`].
pub(crate) const CODINGS: [&str; 3] = ["gzip", "br", "zstd"];

/// The index of gzip in [`CODINGS`].
pub(crate) const GZIP_INDEX: usize = 0;

const GZIP: u8 = 1 << GZIP_INDEX;
const BROTLI: u8 = 2;
const ZSTD: u8 = 4;

/// The codings that a client prefers equally; the smallest of these bodies is sent. An empty set means identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepted(u8);

impl Accepted {
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        Self::from_values(headers.get_all(header::ACCEPT_ENCODING).iter().map(HeaderValue::as_bytes))
    }

    /// Parses the values of the header.
    pub(crate) fn from_values<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> Self {
        let Some(first) = values.next() else { return Self(0) };
        if let Some(second) = values.next() {
            return Self::most_preferred([first, second].into_iter().chain(values));
        }
        match first {
            // The exact values that browsers send.
            b"gzip, deflate, br, zstd" => Self(GZIP | BROTLI | ZSTD),
            b"gzip, deflate, br" => Self(GZIP | BROTLI),
            b"gzip, deflate" | b"gzip" => Self(GZIP),
            b"identity" => Self(0),
            other => Self::most_preferred(std::iter::once(other)),
        }
    }

    /// Returns whether only identity is accepted.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the coding with this index in [`CODINGS`] is in the set.
    pub(crate) fn contains(self, coding: usize) -> bool {
        self.0 & (1 << coding) != 0
    }

    /// Selects the codings with the highest weight (RFC 9110, 12.5.3). Identity has weight 0 unless it is listed.
    fn most_preferred<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut named = [None; CODINGS.len()];
        let (mut identity, mut any_other) = (0, 0);
        for item in values.flat_map(|value| value.split(|byte| *byte == b',')) {
            let mut parts = item.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            let name = parts.next().unwrap_or_default();
            let weight = parts.find_map(weight).unwrap_or(WHOLE);
            if name == b"*" {
                any_other = weight;
            } else if name.eq_ignore_ascii_case(b"identity") {
                identity = weight;
            } else if let Some(at) = CODINGS.iter().position(|one| name.eq_ignore_ascii_case(one.as_bytes()))
            {
                named[at] = Some(weight);
            }
        }
        let weights = named.map(|weight| weight.unwrap_or(any_other));
        let most = weights.into_iter().max().unwrap_or(0);
        if most == 0 || most < identity {
            return Self(0);
        }
        let bits = weights.iter().enumerate().filter(|(_, weight)| **weight == most).map(|(at, _)| 1 << at);
        Self(bits.sum())
    }
}

/// A weight of 1, in thousandths.
const WHOLE: u16 = 1_000;

/// Returns the weight `q=0.5` in thousandths: `None` for another parameter, 0 for an invalid weight.
fn weight(parameter: &[u8]) -> Option<u16> {
    let value = parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q="))?;
    let (whole, decimals) = match value.split_first() {
        Some((b'0', rest)) => (0, rest),
        Some((b'1', rest)) => (WHOLE, rest),
        _ => return Some(0),
    };
    let decimals = decimals.strip_prefix(b".").unwrap_or(decimals);
    if decimals.len() > 3 || !decimals.iter().all(u8::is_ascii_digit) {
        return Some(0);
    }
    let thousandths = decimals.iter().zip([100, 10, 1]).map(|(digit, worth)| u16::from(digit - b'0') * worth);
    Some((whole + thousandths.sum::<u16>()).min(WHOLE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(values: &[&str]) -> Vec<&'static str> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::ACCEPT_ENCODING, value.parse().unwrap());
        }
        let accepted = Accepted::from_headers(&headers);
        CODINGS
            .into_iter()
            .enumerate()
            .filter(|(at, _)| accepted.contains(*at))
            .map(|(_, name)| name)
            .collect()
    }

    #[test]
    fn accepts_the_listed_codings() {
        assert_eq!(accepted(&["gzip, deflate, br, zstd"]), CODINGS);
        assert_eq!(accepted(&["gzip, deflate, br"]), ["gzip", "br"]);
        assert_eq!(accepted(&["gzip, deflate"]), ["gzip"]);
        assert_eq!(accepted(&["gzip,deflate,br,zstd"]), CODINGS);
        assert_eq!(accepted(&["GZIP", "br"]), ["gzip", "br"]);
        for plain in [&["identity"][..], &[""], &["deflate"], &[]] {
            assert!(accepted(plain).is_empty(), "{plain:?}");
        }
    }

    #[test]
    fn prefers_the_highest_weight() {
        for (value, preferred) in [
            ("gzip;q=0.5, br;q=1.0", &["br"][..]),
            ("gzip;q=0.5, br;q=0.50", &["gzip", "br"]),
            ("br;q=0.001, gzip;q=0", &["br"]),
            ("*", &CODINGS),
            ("*;q=0.1, br;q=0", &["gzip", "zstd"]),
            ("gzip;q=0", &[]),
            ("br;q=0.9, identity", &[]),
            ("br, identity;q=0.5, *;q=0", &["br"]),
            ("identity;q=0", &[]),
            ("br ; q=1 , gzip\t;\tQ=1.000", &["gzip", "br"]),
            ("br;level=4;q=0.7,zstd;q=0.8", &["zstd"]),
        ] {
            assert_eq!(accepted(&[value]), preferred, "{value}");
        }
    }

    #[test]
    fn an_invalid_weight_counts_as_zero() {
        for value in ["br;q=", "br;q=2", "br;q=-1", "br;q=0.x", "br;q=0.0001", "br;q=\u{e9}", ";;,,;q", "q=1"]
        {
            let value = http::HeaderValue::from_bytes(value.as_bytes()).unwrap();
            assert_eq!(Accepted::most_preferred(std::iter::once(value.as_bytes())), Accepted(0), "{value:?}");
        }
    }
}
