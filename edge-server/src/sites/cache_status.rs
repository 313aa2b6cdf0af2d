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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics;

    #[test]
    fn the_metric_has_a_counter_at_the_position_of_each_status() {
        let all = [CacheStatus::Hit, CacheStatus::Miss, CacheStatus::Stale];
        assert_eq!(all.map(|status| status as usize), [0, 1, 2]);
        assert_eq!(all.map(CacheStatus::as_str), metrics::PAGES_SERVED.values());
    }
}
