//! Whether this process exports spans.

use std::sync::atomic::{AtomicBool, Ordering};

/// Until spans are exported, context propagation has nothing to propagate.
static TRACING: AtomicBool = AtomicBool::new(false);

pub(super) fn tracing_is_on() -> bool {
    TRACING.load(Ordering::Relaxed)
}

pub(super) fn set_tracing(is_on: bool) {
    TRACING.store(is_on, Ordering::Relaxed);
}
