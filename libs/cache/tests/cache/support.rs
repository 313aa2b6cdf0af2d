//! A Redis to use, and how to wait.

use std::time::Duration;

/// The Redis all tests share, and a prefix of this test's own.
pub(crate) async fn redis() -> (String, String) {
    let sandbox::test::TestRedis { url, prefix, .. } = sandbox::test::redis().await;
    (url, prefix)
}

/// Fails the test if this takes longer than any machine should need.
pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.unwrap()
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
