//! A rate limit's rule and the decision about one hit.

use std::time::Duration;

/// At most `limit` hits in each window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Hits allowed in a window.
    pub limit: u32,
    /// The window's length, at least a millisecond. Windows are fixed: they begin at whole multiples of it.
    pub window: Duration,
}

/// The decision about a hit, with the figures of the deciding rule: of the exceeded rules the one with the
/// window that ends last, else the rule with the fewest hits left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the hit is allowed. Only allowed hits are counted.
    pub allowed: bool,
    /// The rule's limit.
    pub limit: u32,
    /// The full length of the rule's window.
    pub window: Duration,
    /// Hits left in the window after this one.
    pub remaining: u32,
    /// The time until a retry may succeed; zero if the hit is allowed.
    pub retry_after: Duration,
    /// The time until the window ends.
    pub reset_after: Duration,
}
