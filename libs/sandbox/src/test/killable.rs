//! A Redis that a test can kill.

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};

use super::backends::must;
use crate::progress::Progress;
use crate::redis::{Options, Redis};

/// A Redis for one test, without persistence: after a restart it is empty.
#[derive(Debug)]
pub struct KillableRedis {
    running: Option<Redis>,
    url: String,
    port: u16,
}

impl KillableRedis {
    /// Starts a Redis on a free port.
    pub async fn start() -> Self {
        let redis = must(Redis::start(Options::temporary(), &Progress::silent()).await);
        Self { url: redis.url(), port: redis.port(), running: Some(redis) }
    }

    /// Returns its URL, which a restart doesn't change.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns its port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills it with SIGKILL and waits for its exit.
    pub async fn kill(&mut self) {
        let redis = must(self.running.take().context("it is not running"));
        let pid = must(i32::try_from(redis.pid()).ok().and_then(Pid::from_raw).context("no process"));
        must(kill_process(pid, Signal::KILL).map_err(Into::into));
        must(redis.stop().await);
    }

    /// Restarts it on the same port.
    pub async fn restart(&mut self) {
        let options = Options { port: self.port, ..Options::temporary() };
        self.running = Some(must(Redis::start(options, &Progress::silent()).await));
    }
}
