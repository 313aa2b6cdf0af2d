//! Filters of the submission list.

use chrono::{DateTime, Days, NaiveDate, Utc};
use domain::submissions::Status;
use domain::{FieldError, timestamps};
use schemars::JsonSchema;
use serde::Deserialize;
use store::submissions::SubmissionFilter;
use web::Problem;

/// Most characters of a search.
const SEARCH_CHARS_MAX: usize = 200;

web::list_query!(pub(super) SubmissionsQuery {
    /// Words, or their beginnings, that the answers must all contain; `"exact phrase"`, `one or other` and `-without` work
    /// too.
    #[schemars(length(max = SEARCH_CHARS_MAX))]
    search: Option<String>,
    /// Only submissions from this day (UTC) or instant on.
    #[schemars(length(min = 10), extend("format" = "day-or-instant"))]
    from: Option<String>,
    /// Only submissions up to the end of this day (UTC), or before this instant.
    #[schemars(length(min = 10), extend("format" = "day-or-instant"))]
    to: Option<String>,
    /// Only submissions with `value` as the answer to this field.
    field: Option<String>,
    /// The answer; for a multiple choice, one of the chosen options.
    value: Option<String>,
    /// Default `received`.
    status: Option<SubmissionStatusFilter>,
});

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SubmissionStatusFilter {
    Received,
    Spam,
    Archived,
    All,
}

impl SubmissionsQuery {
    /// Returns the filter.
    pub(super) fn read(self) -> Result<SubmissionFilter, Problem> {
        let (limit, after) = self.pagination().read()?;
        let mut errors = Vec::new();
        if self.search.as_ref().is_some_and(|search| search.chars().count() > SEARCH_CHARS_MAX) {
            let message = format!("search may have at most {SEARCH_CHARS_MAX} characters");
            errors.push(FieldError::new("search", "too_long", message));
        }
        let answer = match (self.field, self.value) {
            (Some(field), Some(value)) => Some((field, value)),
            (None, None) => None,
            (field, _) => {
                let missing = if field.is_some() { "value" } else { "field" };
                let message = "field and value must be given together";
                errors.push(FieldError::new(missing, "required", message));
                None
            }
        };
        let mut bound = |name: &str, text: Option<String>, day_after: u64| {
            let read = read_bound(text.as_deref()?, day_after);
            if read.is_none() {
                let message = format!("{name} must be a day or an instant, such as 2027-01-31");
                errors.push(FieldError::new(name, "format", message));
            }
            read
        };
        let (from, until) = (bound("from", self.from, 0), bound("to", self.to, 1));
        if !errors.is_empty() {
            return Err(Problem::validation(errors));
        }
        let status = match self.status.unwrap_or(SubmissionStatusFilter::Received) {
            SubmissionStatusFilter::Received => Some(Status::Received),
            SubmissionStatusFilter::Spam => Some(Status::Spam),
            SubmissionStatusFilter::Archived => Some(Status::Archived),
            SubmissionStatusFilter::All => None,
        };
        let search = self.search.filter(|search| !search.trim().is_empty());
        Ok(SubmissionFilter { search, from, until, answer, status, after, limit })
    }
}

/// Parses an instant, or a day, which stands for its start plus `days_later`.
fn read_bound(text: &str, days_later: u64) -> Option<DateTime<Utc>> {
    let day =
        |day: NaiveDate| Some(day.checked_add_days(Days::new(days_later))?.and_hms_opt(0, 0, 0)?.and_utc());
    let read = match text.parse::<NaiveDate>() {
        Ok(read) => day(read),
        // A `+` in a query string is decoded as a space.
        Err(_no_day) => DateTime::parse_from_rfc3339(&text.replace(' ', "+")).ok().map(|at| at.to_utc()),
    };
    read.filter(|at| timestamps::is_known(*at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_meant_from_its_beginning_to_its_end() {
        let shown = |text: &str, later| read_bound(text, later).map(|at| at.to_rfc3339());
        assert_eq!(shown("2027-01-31", 0).unwrap(), "2027-01-31T00:00:00+00:00");
        assert_eq!(shown("2027-01-31", 1).unwrap(), "2027-02-01T00:00:00+00:00");
        assert_eq!(shown("2027-01-31T10:00:00 02:00", 1).unwrap(), "2027-01-31T08:00:00+00:00");
        for wrong in ["", "yesterday", "2027-02-30", "1969-12-31", "9999-12-31T23:59:59-01:00"] {
            assert_eq!(shown(wrong, 0), None, "{wrong}");
        }
    }
}
