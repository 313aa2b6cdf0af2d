//! What evaluations cost: bytes that one of them may still copy, and the work that a thread has done.
//!
//! rhai's limits bound single values, not how many of them exist at once, nor how many evaluations a run makes.

use std::cell::Cell;

use super::error::ExpressionError;

/// Maximum number of bytes that the variables of one evaluation take, each counted as often as it is read.
pub(super) const VARIABLES_MAX: usize = 8 << 20;
/// Maximum number of bytes that the functions of one evaluation read and return together.
const FUNCTIONS_MAX: usize = 4 << 20;
/// Bytes that are copied in about the time of one operation.
const BYTES_PER_OPERATION: usize = 64;

thread_local! {
    static LEFT: Cell<usize> = const { Cell::new(0) };
    static OPERATIONS: Cell<u64> = const { Cell::new(0) };
    static WORK: Cell<u64> = const { Cell::new(0) };
}

/// Starts an evaluation on this thread.
pub(super) fn reset() {
    LEFT.set(FUNCTIONS_MAX);
    OPERATIONS.set(0);
    add_work(1);
}

/// Takes bytes from the budget of the evaluation.
pub(super) fn charge(bytes: usize) -> Result<(), String> {
    count_bytes(bytes);
    let left = LEFT.get();
    LEFT.set(left.saturating_sub(bytes));
    if bytes > left { Err("it handles too much data".to_owned()) } else { Ok(()) }
}

/// Counts bytes that are copied without a budget of their own.
pub(crate) fn count_bytes(bytes: usize) {
    add_work(u64::try_from(bytes / BYTES_PER_OPERATION).unwrap_or(u64::MAX));
}

/// Notes the number of operations that the evaluation has reached.
pub(super) fn count_operation(operations: u64) {
    OPERATIONS.set(operations);
    add_work(1);
}

fn add_work(operations: u64) {
    WORK.set(WORK.get().saturating_add(operations));
}

/// Returns the number of operations of this thread's last evaluation. For tests and measurements.
pub fn last_operations() -> u64 {
    OPERATIONS.get()
}

/// Returns all work of this thread's evaluations so far, in operations; copied bytes are converted to operations.
pub fn work() -> u64 {
    WORK.get()
}

pub(super) fn too_much() -> ExpressionError {
    ExpressionError("it reads too much data at once: name a smaller part of it".to_owned())
}
