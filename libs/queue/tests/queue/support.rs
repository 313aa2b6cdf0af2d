//! A Redis to use and one to break, and what the tests ask of a queue.

use std::time::Duration;

use queue::{Config, Queue, Task};
use sandbox::progress::Progress;
use sandbox::redis::{Options, Redis};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// A Redis of the test's own, which it may kill. Started again it is empty, as one without persistence is.
pub(crate) struct Server {
    running: Option<Redis>,
    url: String,
    port: u16,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let redis = Redis::start(Options::temporary(), &Progress::silent()).await.unwrap();
        let url = redis.url();
        let port = redis::Client::open(url.as_str()).unwrap().get_connection_info().addr().to_string();
        let port = port.rsplit(':').next().unwrap().parse().unwrap();
        Self { running: Some(redis), url, port }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// With SIGKILL, and waits until it is gone.
    pub(crate) async fn kill(&mut self) {
        let redis = self.running.take().unwrap();
        let pid = rustix::process::Pid::from_raw(i32::try_from(redis.pid()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        redis.stop().await.unwrap();
    }

    pub(crate) async fn start_again(&mut self) {
        let options = Options { port: self.port, ..Options::temporary() };
        self.running = Some(Redis::start(options, &Progress::silent()).await.unwrap());
    }
}

/// The Redis all tests share, and a prefix of this test's own.
pub(crate) async fn redis() -> (String, String) {
    let sandbox::test::TestRedis { url, prefix, .. } = sandbox::test::redis().await;
    (url, prefix)
}

/// Waits for a condition, however long a busy machine takes; only a hang fails.
pub(crate) async fn eventually(mut holds: impl AsyncFnMut() -> bool) {
    within(async {
        let mut look = tokio::time::interval(Duration::from_millis(5));
        while !holds().await {
            look.tick().await;
        }
    })
    .await;
}

/// Fails the test if this takes longer than any machine should need.
pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.unwrap()
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
        let (queue, asked) = (queue.clone(), stop.clone().cancelled_owned());
        let running = tokio::spawn(async move { queue.work(handler, asked).await.unwrap() });
        Self { stop, running: AbortOnDropHandle::new(running) }
    }

    pub(crate) fn ask_to_stop(&self) {
        self.stop.cancel();
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        within(self.running).await.unwrap();
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
    keys.into_iter().filter(|key| !key.ends_with(":wake")).collect()
}
