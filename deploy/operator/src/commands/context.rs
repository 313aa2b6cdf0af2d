//! What the commands work with: settings, stores, time, randomness and the operator's name.

use std::time::Duration;

use anyhow::Result;
use operations::audit::Operator;
use service::config::Sources;
use service::{Clock, Rng};
use store::Db;
use warehouse::Warehouse;

use crate::settings::Settings;

/// The stores connect on first use.
pub(crate) struct Context {
    pub(crate) sources: Sources,
    pub(crate) settings: Settings,
    pub(crate) db: Db,
    pub(crate) warehouse: Warehouse,
    pub(crate) clock: Clock,
    pub(crate) rng: Rng,
    actor: String,
}

impl Context {
    pub(crate) fn new(sources: Sources, settings: Settings, actor: String) -> Result<Self> {
        Ok(Self {
            sources,
            db: store::connect(&settings.store)?,
            warehouse: warehouse::connect(&settings.warehouse)?,
            settings,
            clock: Clock::system(),
            rng: Rng::system(),
            actor,
        })
    }

    /// Returns the operator of a change that happens now.
    pub(crate) fn operator(&self) -> Operator {
        Operator { actor: self.actor.clone(), now: self.clock.now() }
    }

    /// Waits for up to `limit`, if one is given, until the databases accept connections.
    pub(crate) async fn wait(&self, limit: Option<Duration>) -> Result<()> {
        let Some(limit) = limit else { return Ok(()) };
        let report = |reason: &str| eprintln!("waiting for {reason}");
        operations::checks::wait_for_stores(&self.db, &self.warehouse, limit, report).await
    }
}
