//! A Redis to use, and what the tests ask of a queue.

use queue::{Config, Queue, Task};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// The Redis all tests share, and a prefix of this test's own.
pub(crate) async fn redis() -> (String, String) {
    let sandbox::test::TestRedis { url, prefix, .. } = sandbox::test::redis().await;
    (url, prefix)
}

/// A task of that id.
pub(crate) fn task<J>(id: impl std::fmt::Display, job: J) -> Task<J> {
    Task { id: format!("{id}"), job, traceparent: None }
}

/// A worker on a task of its own; dropped, it dies as it would with its process.
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

    pub(crate) fn ask_to_stop(&self) {
        self.stop.cancel();
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        sandbox::test::with_timeout(self.running).await.unwrap();
    }
}

/// Sends one command on a connection of its own.
pub(crate) async fn command(url: &str, words: &[&str]) -> redis::Value {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut command = redis::cmd(words[0]);
    for word in &words[1..] {
        command.arg(*word);
    }
    command.query_async(&mut connection).await.unwrap()
}

/// The queue's keys in Redis, but for the wake-up signal.
pub(crate) async fn keys(config: &Config) -> Vec<String> {
    let answer = command(&config.url, &["KEYS", &format!("{}:*", config.name)]).await;
    let keys: Vec<String> = redis::from_redis_value(answer).unwrap();
    keys.into_iter().filter(|key| !key.ends_with(":notify")).collect()
}
