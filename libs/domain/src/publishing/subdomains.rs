//! Names of subdomains: `<name>.<sites domain>`.

use chrono::{DateTime, TimeDelta, Utc};

use crate::FieldError;

/// Names that look official, or that software requests by default.
const RESERVED: &[&str] = &[
    "admin",
    "api",
    "app",
    "assets",
    "auth",
    "autoconfig",
    "autodiscover",
    "billing",
    "blog",
    "cdn",
    "dashboard",
    "dev",
    "docs",
    "files",
    "ftp",
    "help",
    "imap",
    "localhost",
    "login",
    "mail",
    "mcp",
    "mta-sts",
    "news",
    "ns1",
    "ns2",
    "pop",
    "postmaster",
    "root",
    "security",
    "smtp",
    "ssl",
    "staging",
    "static",
    "status",
    "support",
    "test",
    "webmail",
    "wpad",
    "www",
];

const ADJECTIVES: [&str; 32] = [
    "amber", "bold", "brave", "bright", "calm", "clear", "clever", "cosy", "crisp", "eager", "early", "fair",
    "fresh", "gentle", "glad", "golden", "green", "happy", "keen", "kind", "lively", "lucky", "merry",
    "mild", "noble", "proud", "quick", "quiet", "silver", "sunny", "swift", "warm",
];
const NOUNS: [&str; 32] = [
    "badger", "beacon", "birch", "breeze", "brook", "canyon", "cedar", "cloud", "comet", "coral", "dune",
    "falcon", "fern", "field", "fjord", "forest", "garden", "harbor", "heron", "island", "lake", "lantern",
    "maple", "meadow", "orchid", "otter", "pebble", "pine", "river", "robin", "valley", "willow",
];

/// Regular expression of a name.
pub const PATTERN: &str = "^[a-z0-9]+(-[a-z0-9]+)*$";

/// Validates `name`; errors are reported on `field`.
///
/// A name has 3–30 characters: lowercase letters, digits and single hyphens inside. So it is one DNS label, and can't
/// be mistaken for punycode (`xn--…`).
pub fn check(field: &str, name: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !(3..=30).contains(&name.chars().count()) {
        errors.push(FieldError::new(field, "length", format!("{field} needs 3 to 30 characters")));
    }
    if !name.chars().all(allowed) || name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        let rule = "lowercase letters, digits and single hyphens inside";
        errors.push(FieldError::new(field, "characters", format!("{field} may have only {rule}")));
    }
    if RESERVED.contains(&name) {
        errors.push(FieldError::new(field, "reserved", format!("`{name}` is reserved; choose another name")));
    }
    errors
}

/// Suggests a readable name that can't be derived from another one: two words and five base-32 digits, 35 bits in
/// all.
pub fn suggest(random: [u8; 8]) -> String {
    let digit = |byte: u8| char::from(b"23456789abcdefghjkmnpqrstuvwxyz0"[usize::from(byte % 32)]);
    let tail: String = random[2..7].iter().copied().map(digit).collect();
    let word = |words: [&'static str; 32], byte: u8| words[usize::from(byte % 32)];
    format!("{}-{}-{tail}", word(ADJECTIVES, random[0]), word(NOUNS, random[1]))
}

/// Records a rename in `renamed_at`, which holds those of the last 24 hours. The error is the number of seconds until
/// the next rename is allowed, if there were `per_day` already.
pub fn note_rename(renamed_at: &mut Vec<DateTime<Utc>>, now: DateTime<Utc>, per_day: u32) -> Result<(), u64> {
    renamed_at.retain(|at| now - *at < TimeDelta::days(1));
    if renamed_at.len() >= per_day as usize {
        let oldest = renamed_at.iter().min().copied().unwrap_or(now);
        let wait = oldest + TimeDelta::days(1) - now;
        return Err(u64::try_from(wait.num_seconds()).unwrap_or_default() + 1);
    }
    renamed_at.push(now);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_suggestion_is_valid(random: [u8; 8]) {
            prop_assert_eq!(check("name", &suggest(random)), vec![]);
        }
    }

    #[test]
    fn a_name_may_be_changed_a_few_times_a_day() {
        let start = DateTime::UNIX_EPOCH;
        let mut renamed_at = Vec::new();
        for hour in 0..3 {
            assert_eq!(note_rename(&mut renamed_at, start + TimeDelta::hours(hour), 3), Ok(()));
        }
        let late = start + TimeDelta::hours(20);
        assert_eq!(note_rename(&mut renamed_at, late, 3), Err(4 * 3_600 + 1));
        assert_eq!(renamed_at.len(), 3, "a refused one does not count");
        assert_eq!(note_rename(&mut renamed_at, start + TimeDelta::days(1), 3), Ok(()));
    }

    #[test]
    fn look_alikes_and_reserved_names_are_rejected() {
        for wrong in
            ["ab", "-abc", "abc-", "Abc", "a_b", "xn--mnchen-3ya", "www", "api", &"a".repeat(31), "gööd"]
        {
            assert!(!check("name", wrong).is_empty(), "{wrong}");
        }
        for right in ["abc", "a-b", "123", &"a".repeat(30)] {
            assert!(check("name", right).is_empty(), "{right}");
        }
    }
}
