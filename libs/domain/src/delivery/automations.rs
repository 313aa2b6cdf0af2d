//! Automations: their names, how long runs are kept, when failures are reported, and the links that resume runs.

use std::time::Duration;

use subtle::{Choice, ConstantTimeEq as _};
use uuid::Uuid;

use crate::FieldError;
use crate::encryption::MasterKey;
use crate::field_error::check_length;
use crate::plans::Plan;

/// Maximum length of a name, in characters.
pub const NAME_CHARS_MAX: usize = 120;
/// Maximum length of a description, in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 500;
/// Maximum length of a slug, in bytes.
pub const SLUG_BYTES_MAX: usize = 80;
/// Pattern of a slug.
pub const SLUG_PATTERN: &str = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$";
/// Purpose of the encryption of an automation's variables.
pub const ENV_PURPOSE: &str = "automation.env";
/// Purpose of the encryption of a step's whole output while its run is under way.
pub const STEP_PURPOSE: &str = "automation.step";
const RESUME_PURPOSE: &str = "automation.resume";
/// A run that was claimed this often without storing progress ends with an error: it stops its workers.
pub const CLAIMS_MAX: i32 = 5;
/// Consecutive failures at which the owner gets a mail.
pub const FAILURES_TO_REPORT: [i32; 2] = [1, 10];
/// Consecutive failures at which an automation is disabled.
pub const FAILURES_TO_DISABLE: i32 = 100;

/// Validates the name, slug and description of an automation.
pub fn check(name: Option<&str>, slug: Option<&str>, description: Option<&str>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(name) = name {
        check_length(&mut errors, "name", name.trim(), 1, NAME_CHARS_MAX);
    }
    if let Some(slug) = slug.filter(|slug| !is_slug(slug)) {
        let message = format!(
            "slug `{}` must be 1 to {SLUG_BYTES_MAX} lowercase letters, digits and hyphens, without a hyphen at its ends",
            slug.chars().take(SLUG_BYTES_MAX).collect::<String>()
        );
        errors.push(FieldError::new("slug", "slug", message));
    }
    if let Some(description) = description {
        check_length(&mut errors, "description", description, 0, DESCRIPTION_CHARS_MAX);
    }
    errors
}

fn is_slug(slug: &str) -> bool {
    (1..=SLUG_BYTES_MAX).contains(&slug.len())
        && slug.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        && !slug.starts_with('-')
        && !slug.ends_with('-')
}

/// Returns how long ended runs are kept.
pub fn retention(plan: Plan) -> Duration {
    let days = match plan {
        Plan::Free => 7,
        Plan::Pro => 30,
        Plan::Scale => 90,
    };
    Duration::from_hours(days * 24)
}

/// What follows from further failures without a success between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureReaction {
    /// Nothing.
    None,
    /// The owner gets a mail.
    Report,
    /// The automation is disabled, and the owner gets a mail.
    Disable,
}

/// Returns what follows when the number of consecutive failures rises from `before` to `after`.
pub fn failure_reaction(before: i32, after: i32) -> FailureReaction {
    let passes = |threshold: i32| before < threshold && after >= threshold;
    if passes(FAILURES_TO_DISABLE) {
        FailureReaction::Disable
    } else if FAILURES_TO_REPORT.into_iter().any(passes) {
        FailureReaction::Report
    } else {
        FailureReaction::None
    }
}

/// Returns the secret of the link that ends wait number `number` of a run: 128 bits that can't be guessed without the
/// key. The same at each call, until another key becomes the first one.
pub fn resume_token(key: &MasterKey, run_id: Uuid, number: u32) -> String {
    token_of(key.digest(RESUME_PURPOSE, &[&run_id.to_string(), &number.to_string()]))
}

/// Returns whether `given` is the secret of this link, by any of the keys: links live for 30 days, and a rotation may begin
/// meanwhile. Compares in constant time.
pub fn is_resume_token(key: &MasterKey, run_id: Uuid, number: u32, given: &str) -> bool {
    let (run_id, number) = (run_id.to_string(), number.to_string());
    let parts = [run_id.as_str(), &number];
    let digests = key.digests(RESUME_PURPOSE, &parts);
    let is_equal = |digest| token_of(digest).as_bytes().ct_eq(given.as_bytes());
    digests.map(is_equal).fold(Choice::from(0), |any, one| any | one).into()
}

fn token_of(digest: [u8; 32]) -> String {
    digest[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the path of a resume link.
pub fn resume_path(key: &MasterKey, run_id: Uuid, number: u32) -> String {
    format!("/api/automations/resume/{run_id}/{number}/{}", resume_token(key, run_id, number))
}

/// Returns the path of a trigger URL.
pub fn trigger_path(automation_id: Uuid, slug: &str) -> String {
    format!("/api/automations/run/{automation_id}/{slug}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_slugs_and_descriptions_are_bounded() {
        assert_eq!(check(Some("Leads"), Some("a-1"), Some("")), vec![]);
        assert_eq!(check(Some(" "), None, None)[0].code, "required");
        for slug in ["", "-a", "a-", "A", "a b", "a/b", "é", &"a".repeat(81)] {
            assert_eq!(check(None, Some(slug), None)[0].field, "slug", "{slug}");
        }
        assert_eq!(check(None, None, Some(&"x".repeat(501)))[0].field, "description");
    }

    #[test]
    fn failures_are_reported_at_1_and_10_and_disable_at_100() {
        let reactions: Vec<i32> = (0..150)
            .filter(|&before| failure_reaction(before, before + 1) != FailureReaction::None)
            .map(|before| before + 1)
            .collect();
        assert_eq!(reactions, [1, 10, 100]);
        assert_eq!(failure_reaction(3, 64), FailureReaction::Report);
        assert_eq!(failure_reaction(0, 512), FailureReaction::Disable);
        assert_eq!(failure_reaction(100, 101), FailureReaction::None);
    }

    #[test]
    fn a_resume_token_is_of_one_run_and_one_wait() {
        let key = MasterKey::of_secret(b"secret");
        let run = Uuid::from_u128(1);
        let token = resume_token(&key, run, 0);
        assert_eq!(token.len(), 32);
        assert!(is_resume_token(&key, run, 0, &token));
        assert!(!is_resume_token(&key, run, 1, &token));
        assert!(!is_resume_token(&key, Uuid::from_u128(2), 0, &token));
        assert!(!is_resume_token(&MasterKey::of_secret(b"other"), run, 0, &token));
        assert!(!is_resume_token(&key, run, 0, ""));
    }

    #[test]
    fn a_link_made_before_a_rotation_works_until_its_key_is_removed() {
        let hex = |byte: &str| byte.repeat(32);
        let keys = |text: String| MasterKey::parse(&text).unwrap();
        let run = Uuid::from_u128(1);
        let token = resume_token(&keys(hex("0a")), run, 0);
        let rotated = keys(format!("2027:{},{}", hex("0b"), hex("0a")));
        assert_ne!(resume_token(&rotated, run, 0), token);
        assert!(is_resume_token(&rotated, run, 0, &token));
        assert!(is_resume_token(&rotated, run, 0, &resume_token(&rotated, run, 0)));
        assert!(!is_resume_token(&rotated, run, 1, &token));
        assert!(!is_resume_token(&keys(format!("2027:{}", hex("0b"))), run, 0, &token));
    }
}
