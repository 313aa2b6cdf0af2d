//! Filters of a view: parameters `filters.…` of its page, passed on to every query.

use serde::Serialize;

use crate::api_client::Call;
use crate::url_query::UrlQuery;

/// Dimensions with their labels.
pub(super) const DIMENSIONS: [(&str, &str); 14] = [
    ("url", "Page"),
    ("entry_page", "Entry page"),
    ("exit_page", "Exit page"),
    ("referrer", "Referrer"),
    ("channel", "Channel"),
    ("utm_source", "Source"),
    ("utm_medium", "Medium"),
    ("utm_campaign", "Campaign"),
    ("country", "Country"),
    ("region", "Region"),
    ("city", "City"),
    ("device", "Device"),
    ("browser", "Browser"),
    ("os", "System"),
];

/// A filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Filter {
    pub(super) parameter: String,
    pub(super) label: &'static str,
    pub(super) value: String,
}

/// Returns the label of a dimension.
pub(super) fn label_of(dimension: &str) -> Option<&'static str> {
    DIMENSIONS.iter().find(|(name, _)| *name == dimension).map(|(_, label)| *label)
}

/// Returns the filters of a page. Unknown dimensions are left out.
pub(super) fn of(query: &UrlQuery) -> Vec<Filter> {
    let known = query.with_prefix("filters.").filter_map(|(name, value)| {
        let label = label_of(name)?;
        Some(Filter { parameter: format!("filters.{name}"), label, value: value.to_owned() })
    });
    known.filter(|filter| !filter.value.is_empty()).collect()
}

/// Adds the filters to a query of the API.
pub(super) fn add_to(call: Call, filters: &[Filter]) -> Call {
    filters.iter().fold(call, |call, filter| call.query(&filter.parameter, &filter.value))
}
