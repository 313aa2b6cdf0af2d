//! Bounds how often one warning is logged: an outage must not fill the disk with the same line.
//!
//! Of the warnings of one place in the code, the first few of each interval are logged. The rest is counted, and the count
//! is logged at the end of the interval.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};

/// Warnings of one callsite that are logged in an interval.
const LOGGED: u32 = 10;
const INTERVAL: Duration = Duration::from_secs(60);

/// A filter that drops repeated warnings and counts them.
#[derive(Clone, Debug, Default)]
pub(super) struct RepeatedWarnings(Arc<Mutex<HashMap<Identifier, Counter>>>);

/// The warnings of one callsite in this interval.
#[derive(Debug)]
struct Counter {
    metadata: &'static Metadata<'static>,
    logged: u32,
    dropped: u64,
}

impl RepeatedWarnings {
    /// Starts the thread that logs the counts.
    pub(super) fn start() -> std::io::Result<Self> {
        let filter = Self::default();
        let counts = filter.clone();
        std::thread::Builder::new().name("log-counts".to_owned()).spawn(move || {
            loop {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "a thread of its own that wakes once a minute"
                )]
                std::thread::sleep(INTERVAL);
                counts.log_counts();
            }
        })?;
        Ok(filter)
    }

    /// Logs how many warnings were dropped since the last call, one line per callsite.
    pub(super) fn log_counts(&self) {
        // Logging takes the lock again, so it is released first.
        let counters = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for Counter { metadata, dropped, .. } in counters.into_values().filter(|counter| counter.dropped > 0)
        {
            tracing::warn!(
                count = dropped,
                of = metadata.target(),
                line = metadata.line(),
                "more warnings of one kind were not logged"
            );
        }
    }
}

impl<S: Subscriber> Filter<S> for RepeatedWarnings {
    fn enabled(&self, _metadata: &Metadata<'_>, _context: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _context: &Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() != Level::WARN {
            return true;
        }
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counter =
            counters.entry(metadata.callsite()).or_insert(Counter { metadata, logged: 0, dropped: 0 });
        let is_logged = counter.logged < LOGGED;
        if is_logged {
            counter.logged += 1;
        } else {
            counter.dropped += 1;
        }
        is_logged
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::{Layer as _, fmt};

    use super::*;

    #[derive(Clone, Default)]
    struct Output(Arc<Mutex<Vec<u8>>>);

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn repeated_warnings_are_counted_and_other_lines_are_logged() {
        let (output, repeated) = (Output::default(), RepeatedWarnings::default());
        let writer = output.clone();
        let lines = fmt::layer().with_ansi(false).with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry().with(lines.with_filter(repeated.clone()));
        tracing::subscriber::with_default(subscriber, || {
            for number in 0..LOGGED + 7 {
                tracing::warn!(number, "Postgres is unavailable");
                tracing::info!(number, "a request");
            }
            tracing::warn!("another warning");
            repeated.log_counts();
            repeated.log_counts();
            tracing::warn!("Redis is unavailable");
        });
        let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        let count = |part: &str| text.matches(part).count();
        assert_eq!(count("Postgres is unavailable"), 10, "{text}");
        assert_eq!(count("a request"), 17, "{text}");
        assert_eq!((count("another warning"), count("Redis is unavailable")), (1, 1), "{text}");
        assert_eq!((count("were not logged"), count("count=7")), (1, 1), "{text}");
    }
}
