//! Refuses requests of automations that call each other without end.

use domain::depth::{HEADER, is_loop, parse};
use http::HeaderMap;
use web::{Code, Problem};

/// Returns how many deliveries and automations led to a request, for the run that it starts.
///
/// # Errors
/// 508 if they are too many.
pub(super) fn read_depth(headers: &HeaderMap) -> Result<i16, Problem> {
    let depth = parse(headers.get_all(HEADER).iter().filter_map(|value| value.to_str().ok()));
    if is_loop(depth) {
        let detail = format!(
            "this request is the {depth}th of a chain of deliveries and automations that call each other"
        );
        return Err(Problem::new(Code::LoopDetected, detail));
    }
    Ok(depth)
}
