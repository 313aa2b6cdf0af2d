//! Validation of account settings.

use crate::FieldError;
use crate::field_error::check_length;

/// Maximum length of an account's name, in characters.
pub const NAME_CHARS_MAX: usize = 80;

/// Validates an account's name and time zone.
pub fn check(name: Option<&str>, timezone: Option<&str>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(name) = name {
        check_length(&mut errors, "name", name.trim(), 1, NAME_CHARS_MAX);
    }
    if timezone.is_some_and(|zone| zone.parse::<chrono_tz::Tz>().is_err()) {
        let message = "timezone must be an IANA name such as `Europe/Berlin` or `UTC`";
        errors.push(FieldError::new("timezone", "unknown_timezone", message));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_zone_is_an_iana_name() {
        for zone in ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Asia/Kathmandu"] {
            assert_eq!(check(None, Some(zone)), vec![], "{zone}");
        }
        for wrong in ["", "Mars/Olympus", "+02:00", "europe berlin", "UTC\0"] {
            assert_eq!(check(None, Some(wrong))[0].code, "unknown_timezone", "{wrong}");
        }
    }

    #[test]
    fn a_name_is_bounded() {
        assert_eq!(check(Some(&"ö".repeat(80)), None), vec![]);
        assert_eq!(check(Some(&"x".repeat(81)), None)[0].code, "too_long");
        assert_eq!(check(Some(" "), None)[0].code, "required");
    }
}
