//! A schedule in words: the common patterns of cron, and others as they are.

/// Names of the days of a week, as cron numbers them.
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Returns when a cron expression fires: `every day at 7:00`, `every 5 minutes`.
pub(super) fn schedule_in_words(cron: &str) -> String {
    let fields: Vec<_> = cron.split_whitespace().collect();
    in_words(&fields).unwrap_or_else(|| format!("at the times of “{cron}”"))
}

fn in_words(fields: &[&str]) -> Option<String> {
    let [minute, hour, day, "*", weekday] = *fields else { return None };
    let days = match (day, weekday) {
        ("*", "*") => "every day".to_owned(),
        ("*", "1-5") => "every working day".to_owned(),
        ("*", digit) => format!("every {}", DAYS.get(number(digit, 7)? % 7)?),
        (digits, "*") => format!("on day {} of every month", number(digits, 31)?),
        _ => return None,
    };
    let is_daily = days == "every day";
    match (minute, hour) {
        ("*", "*") if is_daily => Some("every minute".to_owned()),
        (every, "*") if is_daily && every.starts_with("*/") => {
            Some(format!("every {} minutes", number(every.strip_prefix("*/")?, 59)?))
        }
        (minute, "*") if is_daily => Some(format!("every hour at minute {}", number(minute, 59)?)),
        (minute, hour) => Some(format!("{days} at {}:{:02}", number(hour, 23)?, number(minute, 59)?)),
    }
}

fn number(digits: &str, max: usize) -> Option<usize> {
    digits.parse().ok().filter(|number| *number <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_schedules_read_as_words() {
        for (cron, words) in [
            ("0 7 * * *", "every day at 7:00"),
            ("30 18 * * 1-5", "every working day at 18:30"),
            ("5 6 * * 0", "every Sunday at 6:05"),
            ("5 6 * * 7", "every Sunday at 6:05"),
            ("0 9 1 * *", "on day 1 of every month at 9:00"),
            ("*/5 * * * *", "every 5 minutes"),
            ("15 * * * *", "every hour at minute 15"),
            ("* * * * *", "every minute"),
        ] {
            assert_eq!(schedule_in_words(cron), words, "{cron}");
        }
        for other in
            ["0 7 1 1 *", "0,30 7 * * *", "0 7 1 * 1", "0 25 * * *", "", "0 7 * * 1 2027", "* * * * 1"]
        {
            assert_eq!(schedule_in_words(other), format!("at the times of “{other}”"));
        }
    }
}
