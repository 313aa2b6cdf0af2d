//! The runs that this process has claimed and not ended: their leases are extended, and a run that was cancelled or
//! claimed by another process is told to stop.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use service::{Rounds, ticks};
use store::automations::{Claim, extend_leases};
use tokio_util::sync::CancellationToken;

use crate::state::JobState;

/// Leases are extended this often before they would expire.
const HEARTBEATS_PER_LEASE: u32 = 3;

/// The runs held. Clones share them.
#[derive(Clone)]
pub(super) struct HeldRuns(Arc<Shared>);

struct Shared {
    /// Time after which another process may claim the run of a killed worker.
    lease: Duration,
    held: Mutex<HashMap<Claim, CancellationToken>>,
    /// Runs that were told to stop at shutdown.
    interrupted: Mutex<Vec<Claim>>,
}

/// One run held, until it is dropped.
pub(super) struct HeldRun {
    runs: HeldRuns,
    pub(super) claim: Claim,
    /// Cancelled when the run is to stop.
    pub(super) stop: CancellationToken,
}

impl HeldRuns {
    pub(super) fn new(lease: Duration) -> Self {
        Self(Arc::new(Shared { lease, held: Mutex::default(), interrupted: Mutex::default() }))
    }

    /// Returns how long a claim holds without a heartbeat.
    pub(super) fn lease(&self) -> Duration {
        self.0.lease
    }

    pub(super) fn hold(&self, claim: Claim) -> HeldRun {
        let stop = CancellationToken::new();
        self.all().insert(claim, stop.clone());
        HeldRun { runs: self.clone(), claim, stop }
    }

    /// Tells all runs to stop, so that another process continues them.
    pub(super) fn stop_all(&self) {
        let all = self.all();
        all.values().for_each(CancellationToken::cancel);
        self.0.interrupted.lock().unwrap_or_else(PoisonError::into_inner).extend(all.keys());
    }

    /// Removes and returns the runs that [`Self::stop_all`] has told to stop.
    pub(super) fn interrupted(&self) -> Vec<Claim> {
        std::mem::take(&mut *self.0.interrupted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn stop(&self, lost: &[Claim]) {
        let all = self.all();
        lost.iter().filter_map(|claim| all.get(claim)).for_each(CancellationToken::cancel);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Claim, CancellationToken>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Extends the leases. Never ends.
    pub(super) async fn keep(&self, state: &JobState, rounds: &Rounds) {
        let mut ticks = ticks(heartbeat(self.0.lease));
        loop {
            ticks.tick().await;
            if let Err(error) = rounds.watch(self.extend(state)).await {
                tracing::warn!(%error, "extending the leases of runs failed and is retried");
            }
        }
    }

    async fn extend(&self, state: &JobState) -> Result<(), store::Error> {
        let claims: Vec<Claim> = self.all().keys().copied().collect();
        if claims.is_empty() {
            return Ok(());
        }
        let mut conn = store::acquire(&state.automations_db).await?;
        let lost = extend_leases(&mut conn, &claims, state.clock.now() + self.0.lease).await?;
        // Among them are runs that have ended meanwhile.
        self.stop(&lost);
        Ok(())
    }
}

/// Returns the interval at which all leases are extended with one statement.
pub(crate) fn heartbeat(lease: Duration) -> Duration {
    lease / HEARTBEATS_PER_LEASE
}

impl Drop for HeldRun {
    fn drop(&mut self) {
        self.runs.all().remove(&self.claim);
    }
}
