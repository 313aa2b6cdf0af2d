//! A Postgres that a test can kill.

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};

use super::backends::must;
use crate::data::Data;
use crate::dirs::TempDir;
use crate::postgres::{Options, Postgres};
use crate::progress::Progress;

/// A Postgres for one test, with a migrated database. Its data survives a kill, as in production.
#[derive(Debug)]
pub struct KillablePostgres {
    running: Option<Postgres>,
    options: Options,
    url: String,
    // Declared after the server, so that it is deleted once the server has exited.
    _folder: TempDir,
}

impl KillablePostgres {
    /// Starts a Postgres on a free port, with further settings as `name=value`.
    pub async fn start(settings: &[String]) -> Self {
        let folder = must(TempDir::new("killable-postgres"));
        let options = Options {
            data: Data::Persistent(folder.path.clone()),
            settings: settings.to_vec(),
            ..Options::temporary()
        };
        let postgres = must(Postgres::start(options.clone(), &Progress::silent()).await);
        let (url, port) = (postgres.url(), postgres.port());
        let db = must(store::connect(&store::Config::new(&url, 1)).map_err(Into::into));
        must(store::migrate(&db).await.context("migrating"));
        db.close().await;
        Self { running: Some(postgres), options: Options { port, ..options }, url, _folder: folder }
    }

    /// Returns the URL of its database, which a restart doesn't change.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the running server.
    #[must_use]
    pub fn server(&self) -> &Postgres {
        must(self.running.as_ref().context("it is not running"))
    }

    /// Kills it with SIGKILL and waits for its exit.
    pub async fn kill(&mut self) {
        let postgres = must(self.running.take().context("it is not running"));
        let pid = must(i32::try_from(postgres.pid()).ok().and_then(Pid::from_raw).context("no process"));
        must(kill_process(pid, Signal::KILL).map_err(Into::into));
        must(postgres.stop().await);
    }

    /// Stops it as an operator does.
    pub async fn stop(&mut self) {
        must(must(self.running.take().context("it is not running")).stop().await);
    }

    /// Restarts it on the same port and data.
    pub async fn restart(&mut self) {
        self.running = Some(must(Postgres::start(self.options.clone(), &Progress::silent()).await));
    }
}
