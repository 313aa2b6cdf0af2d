//! Bytes that one evaluation may still copy. rhai's limits bound single values, not how many of them exist at once.

use std::cell::Cell;

use super::error::ExpressionError;

/// Maximum number of bytes that the variables of one evaluation take, each counted as often as it is read.
pub(super) const VARIABLES_MAX: usize = 8 << 20;
/// Maximum number of bytes that the functions of one evaluation read and return together.
const FUNCTIONS_MAX: usize = 4 << 20;

thread_local! {
    static LEFT: Cell<usize> = const { Cell::new(0) };
}

/// Starts an evaluation on this thread.
pub(super) fn reset() {
    LEFT.set(FUNCTIONS_MAX);
}

/// Takes bytes from the budget of the evaluation.
pub(super) fn charge(bytes: usize) -> Result<(), String> {
    let left = LEFT.get();
    LEFT.set(left.saturating_sub(bytes));
    if bytes > left { Err("it handles too much data".to_owned()) } else { Ok(()) }
}

pub(super) fn too_much() -> ExpressionError {
    ExpressionError("it reads too much data at once: name a smaller part of it".to_owned())
}
