//! The step of a funnel whose drop-off is shown, as the query of the page names it: `dropOff`, its number.

use serde::Serialize;
use serde_json::{Value, json};

use super::steps::StepRows;
use crate::api_client::Call;
use crate::api_client::operations::ANALYTICS_DROP_OFF;
use crate::url_query::UrlQuery;

/// The name of the parameter.
pub(super) const DROP_OFF: &str = "dropOff";

/// The step whose drop-off is shown: the visits that completed all steps before it, and not this one.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct DropOffStep {
    /// From 2 on.
    number: usize,
    label: String,
}

impl DropOffStep {
    /// Reads the query. `None` if it names no step of the funnel, or the first one.
    pub(super) fn of(query: &UrlQuery, steps: &StepRows) -> Option<Self> {
        let number = query.get(DROP_OFF)?.parse().ok().filter(|number| *number > 1)?;
        let label = steps.labels().into_iter().nth(number - 1)?;
        Some(Self { number, label })
    }

    /// Asks where the visits went. `funnel` is the body of the query of the funnel.
    pub(super) fn call(&self, mut funnel: Value) -> Call {
        funnel["step"] = json!(self.number);
        Call::of(&ANALYTICS_DROP_OFF).query_body(funnel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_step_behind_another_one_has_a_drop_off() {
        let steps = StepRows::suggested(&["/".to_owned(), "/pricing".to_owned()]);
        let step = |query: &str| DropOffStep::of(&UrlQuery::parse(query), &steps);
        assert_eq!(step("dropOff=2"), Some(DropOffStep { number: 2, label: "/pricing".to_owned() }));
        for query in ["", "dropOff=", "dropOff=0", "dropOff=1", "dropOff=3", "dropOff=-2", "dropOff=x"] {
            assert_eq!(step(query), None, "{query}");
        }
    }
}
