//! Sizes and counts in words, for messages that people read.

const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];

/// Returns a size with at most one decimal: `512 bytes`, `1.5 KB`, `20 MB`. A KB has 1,024 bytes.
pub fn size(bytes: u64) -> String {
    let (mut unit, mut tenths) = (None, bytes.saturating_mul(10));
    for name in UNITS {
        if tenths < 10_240 {
            break;
        }
        (unit, tenths) = (Some(name), tenths.div_ceil(1_024));
    }
    match unit {
        None => counted(i64::try_from(bytes).unwrap_or(i64::MAX), "bytes"),
        Some(unit) if tenths.is_multiple_of(10) => format!("{} {unit}", tenths / 10),
        Some(unit) => format!("{}.{} {unit}", tenths / 10, tenths % 10),
    }
}

/// Returns two sizes that differ in words as well: those that would read alike are in bytes.
pub fn sizes(one: u64, other: u64) -> [String; 2] {
    let rounded = [size(one), size(other)];
    if one == other || rounded[0] != rounded[1] {
        return rounded;
    }
    [one, other].map(|bytes| counted(i64::try_from(bytes).unwrap_or(i64::MAX), "bytes"))
}

/// Returns a count of things: `1 webhook`, `10 webhooks`. The plural's first word that ends with `s` loses it for one.
pub fn counted(count: i64, plural: &str) -> String {
    if count != 1 {
        return format!("{count} {plural}");
    }
    let mut is_singular = false;
    let words = plural.split(' ').map(|word| match word.strip_suffix('s') {
        Some(one) if !is_singular => {
            is_singular = true;
            one
        }
        _ => word,
    });
    format!("1 {}", words.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_units_that_people_read() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1_023, "1023 bytes"),
            (1_024, "1 KB"),
            (1_025, "1.1 KB"),
            (1_536, "1.5 KB"),
            (20 << 20, "20 MB"),
            ((20 << 20) + 1, "20.1 MB"),
            (5 << 30, "5 GB"),
            (u64::MAX, "1677721.6 TB"),
        ] {
            assert_eq!(size(bytes), text, "{bytes}");
        }
        assert_eq!(sizes(20 << 20, 21 << 20), ["20 MB", "21 MB"]);
        assert_eq!(sizes((20 << 20) + 1, (20 << 20) + 2), ["20971521 bytes", "20971522 bytes"]);
    }

    #[test]
    fn one_thing_is_singular() {
        assert_eq!(counted(1, "webhooks"), "1 webhook");
        assert_eq!(counted(0, "webhooks"), "0 webhooks");
        assert_eq!(counted(1, "custom domains"), "1 custom domain");
        assert_eq!(counted(1, "automation runs a month"), "1 automation run a month");
        assert_eq!(counted(12, "automation runs a month"), "12 automation runs a month");
    }
}
