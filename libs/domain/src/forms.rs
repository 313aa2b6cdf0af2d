//! What a form may be, and when it takes submissions.

use chrono::{DateTime, Utc};

use crate::complaint::check_length;
use crate::fields::Field;
use crate::{Complaint, fields, instants};

/// Most characters of a form's name.
pub const NAME_CHARS_MAX: usize = 200;
/// Most characters of what is shown after a submission.
pub const SUCCESS_MESSAGE_CHARS_MAX: usize = 2_000;
/// Most characters on the button.
pub const SUBMIT_LABEL_CHARS_MAX: usize = 100;
/// Most submissions a form can be told to take.
pub const MAX_SUBMISSIONS_MAX: i64 = 1_000_000_000;

/// The texts around a form's fields.
#[derive(Debug, Clone, Default)]
pub struct Texts<'a> {
    /// What the owner calls it; also the hosted page's heading.
    pub name: Option<&'a str>,
    /// Shown after a submission.
    pub success_message: Option<&'a str>,
    /// On the button.
    pub submit_label: Option<&'a str>,
    /// Where a browser goes after a submission.
    pub redirect_url: Option<&'a str>,
}

/// What is wrong with the given parts of a form.
pub fn check(
    texts: &Texts<'_>,
    fields: Option<&[Field]>,
    closes_at: Option<DateTime<Utc>>,
    max_submissions: Option<i64>,
) -> Vec<Complaint> {
    let mut complaints: Vec<Complaint> = instants::check("closesAt", closes_at).into_iter().collect();
    if let Some(name) = texts.name {
        check_length(&mut complaints, "name", name, 1, NAME_CHARS_MAX);
    }
    let message = texts.success_message.unwrap_or_default();
    check_length(&mut complaints, "successMessage", message, 0, SUCCESS_MESSAGE_CHARS_MAX);
    let label = texts.submit_label.unwrap_or_default();
    check_length(&mut complaints, "submitLabel", label, 0, SUBMIT_LABEL_CHARS_MAX);
    if let Some(url) = texts.redirect_url
        && !url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
    {
        complaints.push(Complaint::new("redirectUrl", "url", "redirectUrl must be a http(s) address"));
    }
    if let Some(fields) = fields {
        complaints.extend(fields::check(fields));
    }
    if max_submissions.is_some_and(|max| !(1..=MAX_SUBMISSIONS_MAX).contains(&max)) {
        complaints.push(Complaint::new(
            "maxSubmissions",
            "range",
            "maxSubmissions must be 1 to 1,000,000,000",
        ));
    }
    complaints
}

/// Why a form takes no submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shut {
    /// `closesAt` has passed.
    Closed,
    /// `maxSubmissions`, or what the plan allows a form, is reached.
    Full,
}

/// Whether a form with `count` submissions takes one more at `now`. `plan_limit` is -1 for unlimited.
pub fn shut(
    now: DateTime<Utc>,
    closes_at: Option<DateTime<Utc>>,
    count: i64,
    max_submissions: Option<i64>,
    plan_limit: i64,
) -> Option<Shut> {
    if closes_at.is_some_and(|at| at <= now) {
        return Some(Shut::Closed);
    }
    let full = max_submissions.is_some_and(|max| count >= max) || (plan_limit >= 0 && count >= plan_limit);
    full.then_some(Shut::Full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_shuts_at_its_second_or_when_full() {
        let at = |seconds: i64| DateTime::from_timestamp(seconds, 0).unwrap();
        assert_eq!(shut(at(9), Some(at(10)), 0, None, 100), None);
        assert_eq!(shut(at(10), Some(at(10)), 0, None, 100), Some(Shut::Closed));
        assert_eq!(shut(at(9), None, 2, Some(3), -1), None);
        assert_eq!(shut(at(9), None, 3, Some(3), -1), Some(Shut::Full));
        assert_eq!(shut(at(9), None, 100, Some(1000), 100), Some(Shut::Full));
    }

    #[test]
    fn a_redirect_never_runs_script() {
        let texts = Texts { redirect_url: Some("javascript:alert(1)"), ..Texts::default() };
        assert_eq!(check(&texts, None, None, None)[0].field, "redirectUrl");
    }
}
