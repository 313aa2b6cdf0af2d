//! Requests at a fixed rate while a test restarts services. Each is sent on time, whether or not earlier ones are answered.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use hyper_util::client::legacy;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::TIMEOUT;

/// Sends the request with this number. An error is a failed request.
type SendRequest = Arc<dyn Fn(u64) -> Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>> + Send + Sync>;

/// One kind of request.
#[derive(Clone)]
pub struct Rate {
    name: &'static str,
    per_second: u32,
    send: SendRequest,
}

impl Rate {
    /// Requests of one kind: `send` gets their numbers from 0.
    pub fn new<F>(
        name: &'static str,
        per_second: u32,
        send: impl Fn(u64) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        Self { name, per_second, send: Arc::new(move |number| Box::pin(send(number))) }
    }
}

/// A failed request.
#[derive(Debug, Clone)]
pub struct Failure {
    pub name: &'static str,
    /// When it was sent, after the start of the load.
    pub sent_after: Duration,
    pub error: String,
    /// Whether no connection could be opened.
    pub is_refused: bool,
}

/// What became of the requests.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The number of requests of each kind.
    pub sent: BTreeMap<&'static str, u64>,
    pub failures: Vec<Failure>,
    /// When the answered requests were sent, after the start of the load.
    pub answered: Vec<Duration>,
    /// The longest time that one took, and its kind.
    pub longest: (Duration, &'static str),
}

impl Outcome {
    /// The row of the table of restarts.
    pub fn row(&self, restarted: &str, failed: &str) -> String {
        let (longest, kind) = self.longest;
        format!("RESTART | {restarted} | {} | {failed} | {} ms: {kind} |", self.total(), longest.as_millis())
    }

    /// The time from the first refused connection to the next request that was answered.
    pub fn refused_for(&self) -> Duration {
        let refused = self.failures.iter().filter(|failure| failure.is_refused);
        let Some(first) = refused.map(|failure| failure.sent_after).min() else { return Duration::ZERO };
        let later = self.answered.iter().filter(|sent| **sent > first).min();
        later.map_or(Duration::MAX, |sent| *sent - first)
    }

    /// The number of all requests.
    pub fn total(&self) -> u64 {
        self.sent.values().sum()
    }

    /// Fails if a request did.
    pub fn ensure_no_failure(&self) -> anyhow::Result<()> {
        let (count, total) = (self.failures.len(), self.total());
        anyhow::ensure!(count == 0, "{count} of {total} requests failed; {:#?}", self.first_failures());
        Ok(())
    }

    fn first_failures(&self) -> &[Failure] {
        &self.failures[..self.failures.len().min(10)]
    }
}

/// A running load.
pub struct Load {
    began: Instant,
    stop: watch::Sender<bool>,
    /// When the newest answered request was sent, after the start of the load.
    newest_answered: watch::Receiver<Duration>,
    kinds: JoinSet<Outcome>,
}

impl Load {
    /// Starts to send.
    pub fn start(kinds: Vec<Rate>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (answered, newest_answered) = watch::channel(Duration::ZERO);
        let began = Instant::now();
        let kinds = kinds
            .into_iter()
            .map(|kind| send_at_rate(kind, began, answered.clone(), stopped.clone()))
            .collect();
        Self { began, stop, newest_answered, kinds }
    }

    /// Waits until a request is answered that was sent after this call.
    pub async fn until_answered(&mut self) -> anyhow::Result<()> {
        let now = self.began.elapsed();
        let answered = self.newest_answered.wait_for(|sent| *sent > now);
        tokio::time::timeout(TIMEOUT, answered).await.context("no request was answered for a minute")??;
        Ok(())
    }

    /// Stops, waits for the requests that are on their way, and returns what became of all.
    pub async fn stop(self) -> Outcome {
        let _stopped = self.stop.send(true);
        let mut all = Outcome::default();
        for kind in self.kinds.join_all().await {
            all.sent.extend(kind.sent);
            all.failures.extend(kind.failures);
            all.answered.extend(kind.answered);
            all.longest = all.longest.max(kind.longest);
        }
        all.failures.sort_by_key(|failure| failure.sent_after);
        all
    }
}

async fn send_at_rate(
    kind: Rate,
    began: Instant,
    newest_answered: watch::Sender<Duration>,
    mut stopped: watch::Receiver<bool>,
) -> Outcome {
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / kind.per_second);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut requests = JoinSet::new();
    let mut number = 0;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stopped.wait_for(|stopped| *stopped) => break,
        }
        let request = (kind.send)(number);
        number += 1;
        let newest_answered = newest_answered.clone();
        requests.spawn(async move {
            let sent = Instant::now();
            let sent_after = sent - began;
            let answered = tokio::time::timeout(TIMEOUT, request).await;
            let result = answered.unwrap_or_else(|_| Err(anyhow!("no answer after a minute")));
            if result.is_ok() {
                newest_answered.send_if_modified(|newest| {
                    let is_newer = sent_after > *newest;
                    *newest = sent_after.max(*newest);
                    is_newer
                });
            }
            (sent_after, result, sent.elapsed())
        });
    }
    let mut outcome = Outcome { sent: BTreeMap::from([(kind.name, number)]), ..Outcome::default() };
    for (sent_after, result, took) in requests.join_all().await {
        outcome.longest = outcome.longest.max((took, kind.name));
        if result.is_ok() {
            outcome.answered.push(sent_after);
        }
        if let Err(error) = result {
            let is_refused = error.chain().any(|cause| {
                let refused = std::io::ErrorKind::ConnectionRefused;
                let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
                // Requests that wait for the same connection are told that it failed.
                kind == Some(refused)
                    || cause.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect)
            });
            let error = format!("{error:#}");
            outcome.failures.push(Failure { name: kind.name, sent_after, error, is_refused });
        }
    }
    outcome
}
