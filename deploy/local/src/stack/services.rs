//! Runs one service or all four in this process, as a child of the supervisor.

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::de::DeserializeOwned;
use service::config::{Loaded, Sources, load};
use service::{Listeners, Shutdown, telemetry};
use toml::Table;

use super::user_settings;
use crate::folder::Folder;
use crate::stack_file::NAMES;

/// The services of a child process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// All four
    All,
    /// The edge: pages, forms and the API's entry
    EdgeServer,
    /// The management API
    ControlPlane,
    /// The event collector
    Collector,
    /// Background jobs
    JobRunner,
}

/// Runs the services until SIGTERM.
pub(crate) fn run(which: Which, folder: &Folder, set: Vec<String>) -> Result<()> {
    // Before there are threads, because it changes the environment.
    service::adopt_passed_sockets()?;
    let child = Child { folder, set, shutdown: Shutdown::new() };
    let [edge, control, collector, jobs] = NAMES;
    let (name, settings_of) = match which {
        Which::All => ("web-runtime", edge),
        Which::EdgeServer => (edge, edge),
        Which::ControlPlane => (control, control),
        Which::Collector => (collector, collector),
        Which::JobRunner => (jobs, jobs),
    };
    let telemetry = child.load::<Table>(settings_of)?.base.telemetry;
    let _telemetry = telemetry::init(&telemetry, name)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        child.shutdown.on_signals()?;
        match which {
            Which::EdgeServer => child.run_service(edge, edge_server::run).await,
            Which::ControlPlane => child.run_service(control, control_plane::run).await,
            Which::Collector => child.run_service(collector, collector::run).await,
            Which::JobRunner => child.run_service(jobs, job_runner::run).await,
            Which::All => {
                // If one dies, all stop, and the supervisor restarts them.
                let ended = tokio::join!(
                    child.run_service(edge, edge_server::run),
                    child.run_service(control, control_plane::run),
                    child.run_service(collector, collector::run),
                    child.run_service(jobs, job_runner::run),
                );
                ended.0.and(ended.1).and(ended.2).and(ended.3)
            }
        }
    })
}

struct Child<'a> {
    folder: &'a Folder,
    set: Vec<String>,
    shutdown: Shutdown,
}

impl Child<'_> {
    /// Runs one service. Its end, for any reason, requests the shutdown of the others.
    async fn run_service<C, F, R>(&self, name: &str, run: F) -> Result<()>
    where
        C: DeserializeOwned,
        F: FnOnce(C, Listeners, Shutdown) -> R,
        R: Future<Output = Result<()>>,
    {
        let ended = async {
            let loaded = self.load(name)?;
            let listeners = Listeners::bind(&loaded.base.listen)?;
            run(loaded.config, listeners, self.shutdown.clone()).await
        };
        let ended = ended.await.with_context(|| name.to_owned());
        self.shutdown.request();
        ended
    }

    fn load<C: DeserializeOwned>(&self, name: &str) -> Result<Loaded<C>> {
        let file = self.folder.part(&format!("settings/{name}.toml"));
        let mut sources = Sources::from_process(Some(file), self.set.clone());
        // Four services share one list of settings, and each uses those it knows. `up` has rejected unknown ones.
        let known = user_settings::keys_of(name)?;
        sources.set.retain(|entry| entry.split_once('=').is_none_or(|(key, _)| known.contains(key.trim())));
        sources
            .environment
            .retain(|(name, _)| user_settings::key_of(name).is_none_or(|key| known.contains(&key)));
        Ok(load(user_settings::defaults_of(name), &sources)?)
    }
}
