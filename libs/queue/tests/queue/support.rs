//! Test helpers: a shared Redis, workers and raw commands.

use queue::{Config, Queue, Task};
use secrecy::ExposeSecret as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Returns the shared Redis and this test's own prefix.
pub(crate) async fn redis() -> (String, String) {
    let sandbox::test::TestRedis { url, prefix, .. } = sandbox::test::redis().await;
    (url, prefix)
}

pub(crate) fn task<J>(id: impl std::fmt::Display, job: J) -> Task<J> {
    Task { id: format!("{id}"), job, traceparent: None }
}

/// A running worker. Dropping it aborts it, as a killed process would.
pub(crate) struct Worker {
    stop: CancellationToken,
    running: AbortOnDropHandle<()>,
}

impl Worker {
    pub(crate) fn start<J, H, F>(queue: &Queue<J>, handler: H) -> Self
    where
        J: Serialize + DeserializeOwned + Send + 'static,
        H: Fn(Task<J>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let (queue, stopped) = (queue.clone(), stop.clone().cancelled_owned());
        let running = tokio::spawn(async move { queue.run_worker(handler, stopped).await });
        Self { stop, running: AbortOnDropHandle::new(running) }
    }

    pub(crate) fn request_stop(&self) {
        self.stop.cancel();
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        sandbox::test::with_timeout(self.running).await.unwrap();
    }
}

/// Sends one command on a new connection.
pub(crate) async fn command(url: &str, words: &[&str]) -> redis::Value {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut command = redis::cmd(words[0]);
    for word in &words[1..] {
        command.arg(*word);
    }
    command.query_async(&mut connection).await.unwrap()
}

/// Returns the queue's keys in Redis except the notification.
pub(crate) async fn keys(config: &Config) -> Vec<String> {
    let reply = command(config.server.url.expose_secret(), &["KEYS", &format!("{}:*", config.name)]).await;
    let keys: Vec<String> = redis::from_redis_value(reply).unwrap();
    keys.into_iter().filter(|key| !key.ends_with(":notify")).collect()
}
