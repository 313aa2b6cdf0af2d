//! The queue while Sentinels make a replica the primary.

use queue::{Config, Queue};
use redis_connection::Server;
use sandbox::test::{RedisGroup, until, with_timeout};
use tokio::sync::mpsc;

use crate::support::{Worker, task};

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_goes_on_at_the_new_primary() {
    let mut group = RedisGroup::start().await;
    let server = Server {
        password: RedisGroup::PASSWORD.into(),
        sentinels: group.sentinels(),
        master_name: RedisGroup::NAME.to_owned(),
        sentinel_password: RedisGroup::SENTINEL_PASSWORD.into(),
        ..Server::from("redis://nowhere.invalid:1")
    };
    let queue = Queue::<u32>::connect(&Config::new(server, "q")).await.unwrap();
    let (seen, mut arrived) = mpsc::unbounded_channel();
    let worker = Worker::start(&queue, move |task: queue::Task<u32>| {
        let seen = seen.clone();
        async move { seen.send(task.job).unwrap() }
    });
    queue.push(vec![task(1, 1)]).await.unwrap();
    assert_eq!(with_timeout(arrived.recv()).await, Some(1));
    for (job, is_killed) in [(2, false), (3, true)] {
        if is_killed {
            group.kill_primary().await;
        } else {
            group.switch().await;
        }
        until(async || matches!(queue.push(vec![task(job, job)]).await, Ok(1))).await;
        assert_eq!(with_timeout(arrived.recv()).await, Some(job));
    }
    worker.stop().await;
}
