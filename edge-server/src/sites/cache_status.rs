//! The cache status of a page response, as `x-cache` and the metric `edge_pages_served_total` report it.

use cache::Served;

/// How the cache answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheStatus {
    Hit,
    /// Loaded from Postgres for this request.
    Miss,
    /// Expired, and sent because Postgres is unavailable.
    Stale,
}

impl CacheStatus {
    /// All statuses, in the order of their discriminants.
    pub(crate) const ALL: [Self; 3] = [Self::Hit, Self::Miss, Self::Stale];

    pub(crate) fn of<T>(served: &Served<T>) -> Self {
        match (served.stale, served.hit) {
            (true, _) => Self::Stale,
            (false, true) => Self::Hit,
            (false, false) => Self::Miss,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Stale => "stale",
        }
    }
}
