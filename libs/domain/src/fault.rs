//! What every failure below must be able to say to whoever answers a caller.

/// A failure of something we lean on.
pub trait Fault: std::error::Error + Send + Sync + 'static {
    /// Whether the thing is away, so that trying again may help; otherwise it is our mistake.
    fn is_unavailable(&self) -> bool;
}
