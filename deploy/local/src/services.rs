//! One service, or all four, in this process: what the supervisor's children do.

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::de::DeserializeOwned;
use service::config::{Loaded, Sources, load};
use service::{Listeners, Shutdown, telemetry};

use crate::folder::Folder;

/// What a child runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// All four
    All,
    /// The visitor's path
    EdgeServer,
    /// The management API
    ControlPlane,
    /// The events' path
    Collector,
    /// Everything that takes long
    JobRunner,
}

/// Runs until SIGTERM.
pub(crate) fn run(which: Which, folder: &Folder, set: Vec<String>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let read = Reader { folder, set };
    let shutdown = Shutdown::new();
    let edge = || read.load("edge-server", edge_server::DEFAULTS);
    let name = match which {
        Which::All => "web-runtime",
        Which::EdgeServer => "edge-server",
        Which::ControlPlane => "control-plane",
        Which::Collector => "collector",
        Which::JobRunner => "job-runner",
    };
    let chassis =
        read.load::<toml::Table>(if which == Which::All { "edge-server" } else { name }, defaults_of(which))?;
    let _telemetry = telemetry::init(&chassis.chassis.telemetry, name)?;
    runtime.block_on(async {
        shutdown.on_signals()?;
        let stop = || shutdown.clone();
        match which {
            Which::EdgeServer => begin(edge()?, edge_server::run, stop()).await,
            Which::ControlPlane => {
                begin(read.load("control-plane", control_plane::DEFAULTS)?, control_plane::run, stop()).await
            }
            Which::Collector => {
                begin(read.load("collector", collector::DEFAULTS)?, collector::run, stop()).await
            }
            Which::JobRunner => {
                begin(read.load("job-runner", job_runner::DEFAULTS)?, job_runner::run, stop()).await
            }
            Which::All => {
                // One that dies takes the others along: the supervisor starts them all again.
                let ended = tokio::try_join!(
                    until_last(begin(edge()?, edge_server::run, stop()), &shutdown),
                    until_last(
                        begin(
                            read.load("control-plane", control_plane::DEFAULTS)?,
                            control_plane::run,
                            stop()
                        ),
                        &shutdown
                    ),
                    until_last(
                        begin(read.load("collector", collector::DEFAULTS)?, collector::run, stop()),
                        &shutdown
                    ),
                    until_last(
                        begin(read.load("job-runner", job_runner::DEFAULTS)?, job_runner::run, stop()),
                        &shutdown
                    ),
                );
                ended.map(|_| ())
            }
        }
    })
}

fn defaults_of(which: Which) -> &'static str {
    match which {
        Which::All | Which::EdgeServer => edge_server::DEFAULTS,
        Which::ControlPlane => control_plane::DEFAULTS,
        Which::Collector => collector::DEFAULTS,
        Which::JobRunner => job_runner::DEFAULTS,
    }
}

struct Reader<'a> {
    folder: &'a Folder,
    set: Vec<String>,
}

impl Reader<'_> {
    fn load<C: DeserializeOwned>(&self, name: &str, defaults: &str) -> Result<Loaded<C>> {
        let file = self.folder.part(&format!("settings/{name}.toml"));
        load(defaults, &Sources::from_process(Some(file), self.set.clone()))
            .with_context(|| format!("{name}'s settings"))
    }
}

async fn begin<C, F, R>(loaded: Loaded<C>, run: F, shutdown: Shutdown) -> Result<()>
where
    F: FnOnce(C, Listeners, Shutdown) -> R,
    R: Future<Output = Result<()>>,
{
    let listeners = Listeners::bind(&loaded.chassis.listen).await?;
    run(loaded.config, listeners, shutdown).await
}

async fn until_last(service: impl Future<Output = Result<()>>, shutdown: &Shutdown) -> Result<()> {
    let ended = service.await;
    shutdown.request();
    ended
}
