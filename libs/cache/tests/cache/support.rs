//! Access to the tests' Redis.

/// Returns the URL of the shared Redis and a prefix for this test.
pub(crate) async fn redis() -> (String, String) {
    let sandbox::test::TestRedis { url, prefix, .. } = sandbox::test::redis().await;
    (url, prefix)
}

/// Sends one command over a new connection.
pub(crate) async fn command(url: &str, words: &[&str]) -> redis::Value {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut command = redis::cmd(words[0]);
    for word in &words[1..] {
        command.arg(*word);
    }
    command.query_async(&mut connection).await.unwrap()
}
