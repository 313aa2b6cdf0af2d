//! Filters of queries. All of them must match.

use serde_json::{Map, Value};

use super::periods::unknown;
use super::{Dimension, NONE};
use crate::FieldError;

/// Maximum length of a filter's value: that of the longest stored path.
pub const VALUE_CHARS_MAX: usize = 1024;
/// Maximum number of filters in one query or step: one for each dimension.
pub const FILTERS_MAX: usize = Dimension::ALL.len();

/// Maximum length of an unknown name that an error repeats.
const UNKNOWN_CHARS_SHOWN: usize = 64;

/// Selects one value of a dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    pub dimension: Dimension,
    /// The whole value, compared exactly; empty for an absent value.
    pub value: String,
}

/// Parses the filters `given` as single parameters, and those in a JSON object of texts. Errors name the parameter
/// `path` and the position in it.
pub(super) fn read_filters<'a>(
    path: &str,
    given: impl IntoIterator<Item = (&'a str, &'a str)>,
    json: Option<&str>,
    errors: &mut Vec<FieldError>,
) -> Vec<Filter> {
    let given: Vec<_> = given.into_iter().collect();
    let members: Result<Map<String, Value>, _> = json.map_or_else(|| Ok(Map::new()), serde_json::from_str);
    let count = given.len() + members.as_ref().map_or(0, Map::len);
    if count > FILTERS_MAX {
        let message = format!("{path}: there are {FILTERS_MAX} filters, each to be given once, not {count}");
        errors.push(FieldError::new(path, "too_many", message));
        return Vec::new();
    }
    let mut filters = Vec::new();
    for (word, value) in given {
        read_filter(path, word, Some(value), &mut filters, errors);
    }
    if let Ok(members) = &members {
        for (word, value) in members {
            read_filter(path, word, value.as_str(), &mut filters, errors);
        }
    } else {
        let message = format!("{path} must be a JSON object of texts, such as {{\"utm_source\":\"news\"}}");
        errors.push(FieldError::new(path, "type", message));
    }
    filters.sort_by_key(|filter| filter.dimension);
    filters
}

fn read_filter(
    path: &str,
    word: &str,
    value: Option<&str>,
    filters: &mut Vec<Filter>,
    errors: &mut Vec<FieldError>,
) {
    let Some(dimension) = Dimension::parse(word) else {
        let word: String = word.chars().take(UNKNOWN_CHARS_SHOWN).collect();
        let field = format!("{path}.{word}").replace('\0', "\u{fffd}");
        let known = Dimension::ALL.map(Dimension::as_str).join(", ");
        let message = format!("{field}: there is no such filter; the filters are {known}");
        errors.push(FieldError::new(field, "unknown", message));
        return;
    };
    let field = format!("{path}.{word}");
    let Some(value) = value else {
        errors.push(FieldError::new(&field, "type", format!("{field} must be a text")));
        return;
    };
    if filters.iter().any(|filter| filter.dimension == dimension) {
        errors.push(FieldError::new(&field, "duplicate", format!("{field} is given twice")));
        return;
    }
    let before = errors.len();
    crate::field_error::check_length(errors, &field, value, 0, VALUE_CHARS_MAX);
    if errors.len() == before {
        let value = if value == NONE { String::new() } else { value.to_owned() };
        filters.push(Filter { dimension, value });
    }
}

/// Parses an optional name that must be one of the known ones.
pub(super) fn read_word<T: Copy>(
    field: &str,
    word: Option<&str>,
    known: &[T],
    name: fn(T) -> &'static str,
    errors: &mut Vec<FieldError>,
) -> Option<T> {
    let word = word?;
    let found = known.iter().copied().find(|one| name(*one) == word);
    if found.is_none() {
        errors.push(unknown(field, known.iter().map(|one| name(*one))));
    }
    found
}
