//! The steps of a funnel, as the query of its page names them: `steps[0].kind` and `steps[0].value`. Empty ones are left
//! out.

use serde::Serialize;
use serde_json::{Value, json};

use crate::api_client::Refusal;
use crate::url_query::UrlQuery;

/// Rows of the form: as many as a funnel may have steps.
const ROWS: usize = 5;
/// Steps that are suggested.
const SUGGESTED: usize = 3;

/// A row of the form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct StepRow {
    /// Whether the value is the name of an event; otherwise it is the path of a page.
    pub(super) is_event: bool,
    pub(super) value: String,
}

/// The rows of the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StepRows(pub(super) Vec<StepRow>);

impl StepRows {
    /// Reads the query. `None` if it names no step at all.
    pub(super) fn of(query: &UrlQuery) -> Option<Self> {
        let row = |number: usize| StepRow {
            is_event: query.get(&format!("steps[{number}].kind")) == Some("event"),
            value: query.get(&format!("steps[{number}].value")).unwrap_or_default().trim().to_owned(),
        };
        let rows = Self((0..ROWS).map(row).collect());
        let is_empty = rows.filled().next().is_none();
        (!is_empty).then_some(rows)
    }

    /// Suggests the pages with the most visitors, as a query of the API returned them.
    pub(super) fn suggested(pages: &[String]) -> Self {
        let page = |path: &String| StepRow { is_event: false, value: path.clone() };
        let mut rows: Vec<_> = pages.iter().take(SUGGESTED).map(page).collect();
        rows.resize(ROWS, StepRow::default());
        Self(rows)
    }

    /// Returns the rows with a value, and their numbers.
    fn filled(&self) -> impl Iterator<Item = (usize, &StepRow)> {
        self.0.iter().enumerate().filter(|(_, row)| !row.value.is_empty())
    }

    /// Whether there are enough steps to ask.
    pub(super) fn is_funnel(&self) -> bool {
        self.filled().count() > 1
    }

    /// Returns the steps for the API.
    pub(super) fn to_json(&self) -> Vec<Value> {
        let step = |(_, row): (usize, &StepRow)| {
            if row.is_event {
                json!({ "event": row.value })
            } else {
                json!({ "event": "page_view", "filters": { "url": row.value } })
            }
        };
        self.filled().map(step).collect()
    }

    /// Returns the query with these steps, so that its link leads to this funnel even if they were only suggested.
    pub(super) fn add_to(&self, query: &UrlQuery) -> UrlQuery {
        self.filled().fold(query.clone(), |query, (number, row)| {
            let kind = if row.is_event { "event" } else { "page" };
            let query = query.with(&format!("steps[{number}].kind"), Some(kind));
            query.with(&format!("steps[{number}].value"), Some(&row.value))
        })
    }

    /// Returns the labels of the steps for the API, in their order.
    pub(super) fn labels(&self) -> Vec<String> {
        self.filled().map(|(_, row)| row.value.clone()).collect()
    }

    /// Renames the fields of a refusal to the inputs of the form.
    pub(super) fn with_input_names(&self, mut refusal: Refusal) -> Refusal {
        let numbers: Vec<usize> = self.filled().map(|(number, _)| number).collect();
        for error in &mut refusal.field_errors {
            let index =
                error.field.strip_prefix("steps[").and_then(|rest| rest.split(']').next()?.parse().ok());
            if let Some(number) = index.and_then(|index: usize| numbers.get(index)) {
                error.field = format!("steps[{number}].value");
            }
        }
        refusal
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::api_client::FieldProblem;

    #[test]
    fn empty_rows_are_no_steps_and_problems_name_their_input() {
        let query = UrlQuery::parse(
            "steps[0].value=/&steps[1].value=&steps[2].kind=event&steps[2].value=+sign+up+&period=7d",
        );
        let rows = StepRows::of(&query).unwrap();
        let steps =
            [json!({ "event": "page_view", "filters": { "url": "/" } }), json!({ "event": "sign up" })];
        assert_eq!(rows.to_json(), steps);
        assert_eq!(rows.labels(), ["/", "sign up"]);
        let link = UrlQuery::parse(&rows.add_to(&UrlQuery::parse("period=7d")).to_link()[1..]);
        assert_eq!((StepRows::of(&link), link.get("period")), (Some(rows.clone()), Some("7d")));
        let mut refusal = Refusal::new(StatusCode::BAD_REQUEST, "validation_failed", "x", "x");
        let problem = |field: &str| FieldProblem { field: field.to_owned(), message: "m".to_owned() };
        refusal.field_errors = vec![problem("steps[1].event"), problem("period")];
        let fields: Vec<_> =
            rows.with_input_names(refusal).field_errors.iter().map(|error| error.field.clone()).collect();
        assert_eq!(fields, ["steps[2].value", "period"]);
        assert_eq!(StepRows::of(&UrlQuery::parse("steps[0].value=&period=7d")), None);
    }

    #[test]
    fn top_pages_are_suggested() {
        let rows = StepRows::suggested(&["/".to_owned(), "/pricing".to_owned()]);
        assert!(rows.is_funnel() && rows.0.len() == ROWS);
        assert!(!StepRows::suggested(&[]).is_funnel());
    }
}
