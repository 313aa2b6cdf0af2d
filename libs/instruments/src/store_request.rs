//! The duration of requests to stores. Several crates record it, each for its own store.

use std::time::Instant;

use crate::metrics::STORE_REQUEST_SECONDS;

/// A store with measured requests. Postgres is not among them: `pg_stat_statements` knows more about its statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredStore {
    /// Redis.
    Redis,
    /// ClickHouse.
    ClickHouse,
    /// The blob store, a folder or S3.
    Blobs,
}

impl MeasuredStore {
    fn as_str(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::ClickHouse => "clickhouse",
            Self::Blobs => "blobs",
        }
    }

    /// Awaits a request and records its duration. `is_answer` says whether the store did its part: that a blob does not
    /// exist is an answer. A request that its caller gives up is not recorded, because its result is unknown.
    pub async fn measure<T>(self, request: impl Future<Output = T>, is_answer: impl FnOnce(&T) -> bool) -> T {
        let began = Instant::now();
        let response = request.await;
        let result = if is_answer(&response) { "ok" } else { "error" };
        STORE_REQUEST_SECONDS.record(began.elapsed(), &[("store", self.as_str()), ("result", result)]);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render;

    #[tokio::test]
    async fn requests_are_counted_by_store_and_result() {
        let measure = |response: Result<u8, ()>| {
            MeasuredStore::Blobs.measure(std::future::ready(response), Result::is_ok)
        };
        assert_eq!(measure(Ok(7)).await, Ok(7));
        assert_eq!(measure(Err(())).await, Err(()));
        assert_eq!(measure(Err(())).await, Err(()));
        let text = render();
        for (result, count) in [("ok", 1), ("error", 2)] {
            let series = format!(
                "webruntime_store_request_seconds_count{{result=\"{result}\",store=\"blobs\"}} {count}\n"
            );
            assert!(text.contains(&series), "{text}");
        }
    }
}
