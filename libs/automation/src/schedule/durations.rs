//! Durations as users write them.

use std::time::Duration;

/// Longest wait.
pub const WAIT_MAX: Duration = Duration::from_hours(30 * 24);

/// Parses a duration such as `15m`, `36h` or `1h30m`: whole numbers with the units `d`, `h`, `m` and `s`, each at most
/// once and in this order.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut seconds = 0u64;
    let mut units = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)].into_iter();
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|char: char| !char.is_ascii_digit()).filter(|digits| *digits > 0)?;
        let count: u64 = rest[..digits].parse().ok()?;
        let unit = rest[digits..].chars().next()?;
        let (_, factor) = units.find(|(known, _)| *known == unit)?;
        seconds = seconds.checked_add(count.checked_mul(factor)?)?;
        rest = &rest[digits + unit.len_utf8()..];
    }
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_in_order() {
        let seconds = |text| parse_duration(text).map(|duration| duration.as_secs());
        assert_eq!(seconds("15m"), Some(900));
        assert_eq!(seconds("1d2h3m4s"), Some(93_784));
        assert_eq!(seconds("36h"), Some(129_600));
        for wrong in [
            "",
            "15",
            "m",
            "1x",
            "1m1h",
            "1h1h",
            "-1m",
            "1.5h",
            "1 m",
            "9999999999999999999d",
            "99999999999999999999s",
        ] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
    }
}
