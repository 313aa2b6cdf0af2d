//! Which part of a file is asked for (RFC 9110, 14).

use std::ops::Range;

use http::{HeaderMap, HeaderValue, header};

/// What to send of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// So much of it: from there up to and without there.
    Some(Range<u64>),
    /// It has no such part.
    None,
}

/// What is asked for of a file of that size and version. Several parts at once are answered with all of it, as is
/// a part of another version.
pub(crate) fn asked(headers: &HeaderMap, size: u64, etag: &HeaderValue) -> Part {
    let Some(range) = headers.get(header::RANGE).and_then(|value| value.to_str().ok()) else {
        return Part::Whole;
    };
    // Dates are never sent with files, so that no date can be the right one.
    if headers.get(header::IF_RANGE).is_some_and(|version| version != etag) {
        return Part::Whole;
    }
    let Some(spec) = range.trim().strip_prefix("bytes=") else { return Part::Whole };
    let Some((first, last)) = spec.trim().split_once('-').filter(|_| !spec.contains(',')) else {
        return Part::Whole;
    };
    let number = |text: &str| (!text.is_empty()).then(|| text.parse::<u64>()).transpose();
    match (number(first), number(last)) {
        (Ok(Some(first)), Ok(Some(last))) if first > last => Part::Whole,
        (Ok(Some(first)), Ok(last)) => {
            let end = last.map_or(size, |last| last.saturating_add(1).min(size));
            if first < end { Part::Some(first..end) } else { Part::None }
        }
        (Ok(None), Ok(Some(length))) if length == 0 || size == 0 => Part::None,
        (Ok(None), Ok(Some(length))) => Part::Some(size.saturating_sub(length)..size),
        _ => Part::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_ten(range: &str, if_range: Option<&str>) -> Part {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, range.parse().unwrap());
        if let Some(version) = if_range {
            headers.insert(header::IF_RANGE, version.parse().unwrap());
        }
        asked(&headers, 10, &HeaderValue::from_static("\"v\""))
    }

    #[test]
    fn a_part_lies_within_the_file() {
        for (range, part) in [
            ("bytes=0-3", 0..4),
            ("bytes=4-", 4..10),
            ("bytes=9-99", 9..10),
            ("bytes=-3", 7..10),
            ("bytes=-99", 0..10),
            ("bytes=0-18446744073709551615", 0..10),
        ] {
            assert_eq!(of_ten(range, None), Part::Some(part), "{range}");
        }
    }

    #[test]
    fn what_lies_behind_the_end_is_none() {
        for range in ["bytes=10-", "bytes=10-12", "bytes=-0"] {
            assert_eq!(of_ten(range, None), Part::None, "{range}");
        }
    }

    #[test]
    fn what_is_no_range_or_several_is_answered_with_all() {
        for range in ["bytes=3-1", "bytes=a-b", "lines=1-2", "bytes=0-1,3-4", "bytes=", "bytes=-"] {
            assert_eq!(of_ten(range, None), Part::Whole, "{range}");
        }
    }

    #[test]
    fn a_part_of_another_version_is_answered_with_all() {
        assert_eq!(of_ten("bytes=0-3", Some("\"v\"")), Part::Some(0..4));
        for other in ["\"w\"", "W/\"v\"", "Sat, 21 Nov 2026 08:00:00 GMT"] {
            assert_eq!(of_ten("bytes=0-3", Some(other)), Part::Whole, "{other}");
        }
    }
}
