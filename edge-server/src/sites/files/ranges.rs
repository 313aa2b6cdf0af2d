//! Range requests (RFC 9110, 14).

use std::ops::Range;

use http::{HeaderMap, HeaderValue, header};

/// The part of a file that a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ByteRange {
    Whole,
    /// Offsets; the end is exclusive.
    Part(Range<u64>),
    Unsatisfiable,
}

impl ByteRange {
    /// Parses the `Range` header for a file of this size and version. Several ranges, an invalid one, and a range of another
    /// version are answered with the whole file.
    pub(crate) fn parse(headers: &HeaderMap, size: u64, etag: &HeaderValue) -> Self {
        let Some(range) = headers.get(header::RANGE).and_then(|value| value.to_str().ok()) else {
            return Self::Whole;
        };
        // Files are sent without a date, so a date in `If-Range` never matches.
        if headers.get(header::IF_RANGE).is_some_and(|version| version != etag) {
            return Self::Whole;
        }
        let Some(spec) = range.trim().strip_prefix("bytes=") else { return Self::Whole };
        let Some((first, last)) = spec.trim().split_once('-').filter(|_| !spec.contains(',')) else {
            return Self::Whole;
        };
        let number = |text: &str| (!text.is_empty()).then(|| text.parse::<u64>()).transpose();
        match (number(first), number(last)) {
            (Ok(Some(first)), Ok(Some(last))) if first > last => Self::Whole,
            (Ok(Some(first)), Ok(last)) => {
                let end = last.map_or(size, |last| last.saturating_add(1).min(size));
                if first < end { Self::Part(first..end) } else { Self::Unsatisfiable }
            }
            (Ok(None), Ok(Some(length))) if length == 0 || size == 0 => Self::Unsatisfiable,
            (Ok(None), Ok(Some(length))) => Self::Part(size.saturating_sub(length)..size),
            _ => Self::Whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_ten(range: &str, if_range: Option<&str>) -> ByteRange {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, range.parse().unwrap());
        if let Some(version) = if_range {
            headers.insert(header::IF_RANGE, version.parse().unwrap());
        }
        ByteRange::parse(&headers, 10, &HeaderValue::from_static("\"v\""))
    }

    #[test]
    fn clamps_a_range_to_the_file() {
        for (range, part) in [
            ("bytes=0-3", 0..4),
            ("bytes=4-", 4..10),
            ("bytes=9-99", 9..10),
            ("bytes=-3", 7..10),
            ("bytes=-99", 0..10),
            ("bytes=0-18446744073709551615", 0..10),
        ] {
            assert_eq!(of_ten(range, None), ByteRange::Part(part), "{range}");
        }
    }

    #[test]
    fn a_range_behind_the_end_is_unsatisfiable() {
        for range in ["bytes=10-", "bytes=10-12", "bytes=-0"] {
            assert_eq!(of_ten(range, None), ByteRange::Unsatisfiable, "{range}");
        }
    }

    #[test]
    fn an_invalid_range_or_several_get_the_whole_file() {
        for range in ["bytes=3-1", "bytes=a-b", "lines=1-2", "bytes=0-1,3-4", "bytes=", "bytes=-"] {
            assert_eq!(of_ten(range, None), ByteRange::Whole, "{range}");
        }
    }

    #[test]
    fn a_range_of_another_version_gets_the_whole_file() {
        assert_eq!(of_ten("bytes=0-3", Some("\"v\"")), ByteRange::Part(0..4));
        for other in ["\"w\"", "W/\"v\"", "Sat, 21 Nov 2026 08:00:00 GMT"] {
            assert_eq!(of_ten("bytes=0-3", Some(other)), ByteRange::Whole, "{other}");
        }
    }
}
