//! The step of a funnel before which visits left, as the query of the page names it: `left`, its number.

use serde::Serialize;
use serde_json::{Value, json};

use super::steps::StepRows;
use crate::api_client::Call;
use crate::api_client::operations::ANALYTICS_DROP_OFF;
use crate::url_query::UrlQuery;

/// The name of the parameter.
pub(super) const LEFT: &str = "left";

/// A step, before which visits left.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct LeftStep {
    /// From 2 on.
    number: usize,
    label: String,
}

impl LeftStep {
    /// Reads the query. `None` if it names no step of the funnel, or the first one.
    pub(super) fn of(query: &UrlQuery, steps: &StepRows) -> Option<Self> {
        let number = query.get(LEFT)?.parse().ok().filter(|number| *number > 1)?;
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
    fn only_a_step_behind_another_one_can_be_left_out() {
        let steps = StepRows::suggested(&["/".to_owned(), "/pricing".to_owned()]);
        let left = |query: &str| LeftStep::of(&UrlQuery::parse(query), &steps);
        assert_eq!(left("left=2"), Some(LeftStep { number: 2, label: "/pricing".to_owned() }));
        for query in ["", "left=", "left=0", "left=1", "left=3", "left=-2", "left=x"] {
            assert_eq!(left(query), None, "{query}");
        }
    }
}
