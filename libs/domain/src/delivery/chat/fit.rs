//! Fits a message into a platform's limits.

use serde_json::Value;

/// Placeholder of an empty answer: some platforms reject empty texts.
pub(super) const EMPTY: &str = "–";

/// Returns the body with the maximum number of `count` fields that fits into `max_bytes` of JSON, by trial; `write`
/// creates the body with a given number.
pub(super) fn most_that_fit(count: usize, max_bytes: usize, write: impl Fn(usize) -> Value) -> Value {
    let fits = |shown: usize| write(shown).to_string().len() <= max_bytes;
    let (mut fitting, mut beyond) = (0, count + 1);
    while beyond - fitting > 1 {
        let middle = fitting.midpoint(beyond);
        if fits(middle) { fitting = middle } else { beyond = middle }
    }
    write(fitting)
}

/// Returns a line with the number of omitted fields, if any.
pub(super) fn omitted_fields(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("… and one more field".to_owned()),
        more => Some(format!("… and {more} more fields")),
    }
}
