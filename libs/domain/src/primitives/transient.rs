//! Tells temporary errors of dependencies from defects of our own.

/// An error that may be transient. The HTTP layer answers a transient one with 503 and any other with 500.
pub trait Transient: std::error::Error + Send + Sync + 'static {
    /// Returns `true` if the dependency is unavailable, so that a retry may succeed.
    fn is_transient(&self) -> bool;
}
