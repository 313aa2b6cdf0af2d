//! Filters of the submission list.

use domain::FieldError;
use domain::submissions::Status;
use schemars::JsonSchema;
use serde::Deserialize;
use store::submissions::SubmissionFilter;
use web::Problem;

use crate::api::time_range::TimeRange;

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
        let TimeRange { from, until } = TimeRange::read(self.from, self.to, &mut errors);
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
