//! Numbers, sizes, durations and changes.

/// Returns a count: `18,811` up to 99,999, then `184 k`, `1.2 M`.
pub(crate) fn count(value: f64) -> String {
    let rounded = value.round();
    match rounded.abs() {
        below if below < 100_000.0 => grouped(rounded),
        below if below < 999_500.0 => format!("{:.0} k", rounded / 1e3),
        below if below < 9_950_000.0 => format!("{:.1} M", rounded / 1e6),
        _ => format!("{} M", grouped((rounded / 1e6).round())),
    }
}

fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// Returns a size in decimal units: `84 kB`.
pub(crate) fn bytes(value: f64) -> String {
    let units = ["bytes", "kB", "MB", "GB", "TB"];
    let mut scaled = value;
    let mut unit = 0;
    while scaled >= 999.5 && unit + 1 < units.len() {
        scaled /= 1e3;
        unit += 1;
    }
    let decimals = usize::from(unit > 0 && scaled < 9.95);
    format!("{scaled:.decimals$} {}", units[unit])
}

/// Returns a duration of seconds: `2 m 12 s`.
pub(crate) fn duration(seconds: f64) -> String {
    let total = seconds.round().max(0.0) as u64;
    let (hours, minutes, seconds) = (total / 3_600, total / 60 % 60, total % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes} m {seconds} s"),
        _ => format!("{hours} h {minutes} m"),
    }
}

/// Returns a percentage, without decimals from 10: `41 %`, `2.4 %`.
pub(crate) fn percent(value: f64) -> String {
    if value.abs() < 9.95 && value.fract().abs() > 0.04 {
        format!("{value:.1} %")
    } else {
        format!("{value:.0} %")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rounds_as_people_read() {
        let counts = [0.0, 999.0, 18_811.0, 99_999.0, 184_321.0, 999_499.0, 1_234_567.0, 61_000_000.0, 2.5e9];
        let shown = counts.map(count);
        assert_eq!(
            shown,
            ["0", "999", "18,811", "99,999", "184 k", "999 k", "1.2 M", "61 M", "2,500 M"].map(str::to_owned)
        );
        assert_eq!(
            [84_210.0, 999.0, 1_500_000.0].map(bytes),
            ["84 kB", "999 bytes", "1.5 MB"].map(str::to_owned)
        );
        assert_eq!([9.0, 132.0, 7_260.0].map(duration), ["9 s", "2 m 12 s", "2 h 1 m"].map(str::to_owned));
        assert_eq!([41.3, 2.44, 3.0, 9.97].map(percent), ["41 %", "2.4 %", "3 %", "10 %"].map(str::to_owned));
    }

    proptest! {
        #[test]
        fn a_shown_count_is_short_and_near(value in 0_u32..2_000_000_000) {
            let shown = count(f64::from(value));
            prop_assert!(shown.len() <= 7, "{}", shown);
            let scale = if shown.ends_with('M') { 1e6 } else if shown.ends_with('k') { 1e3 } else { 1.0 };
            let digits: String = shown.chars().filter(|char| char.is_ascii_digit() || *char == '.').collect();
            let back = digits.parse::<f64>().unwrap() * scale;
            prop_assert!((back - f64::from(value)).abs() <= f64::from(value) * 0.06 + 0.5, "{} for {}", shown, value);
        }
    }
}
