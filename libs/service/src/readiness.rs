//! Whether the service may take traffic: each thing it depends on keeps a named check, and a service that is
//! shutting down is never ready.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::Shutdown;

/// The named checks behind `/readyz`. Clones share them.
#[derive(Clone, Debug)]
pub struct Readiness {
    shutdown: Shutdown,
    checks: Arc<Mutex<BTreeMap<&'static str, State>>>,
}

#[derive(Clone, Debug, Serialize)]
struct State {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// What `/readyz` answers.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// All checks hold and nobody has asked to stop.
    pub ready: bool,
    shutting_down: bool,
    checks: BTreeMap<&'static str, State>,
}

impl Readiness {
    /// Ready until a check says otherwise or `shutdown` is requested.
    #[must_use]
    pub fn new(shutdown: &Shutdown) -> Self {
        Self { shutdown: shutdown.clone(), checks: Arc::default() }
    }

    /// Adds a check, failed until its owner says `ok`.
    #[must_use]
    pub fn register(&self, name: &'static str) -> Check {
        let check = Check { name, checks: Arc::clone(&self.checks) };
        check.failed("not tried yet");
        check
    }

    /// How things stand now.
    #[must_use]
    pub fn report(&self) -> Report {
        let checks = lock(&self.checks).clone();
        let shutting_down = self.shutdown.is_requested();
        Report { ready: !shutting_down && checks.values().all(|state| state.ok), shutting_down, checks }
    }
}

/// One check's handle, held by whoever knows how that thing is.
#[derive(Clone, Debug)]
pub struct Check {
    name: &'static str,
    checks: Arc<Mutex<BTreeMap<&'static str, State>>>,
}

impl Check {
    /// It works.
    pub fn ok(&self) {
        self.set(State { ok: true, reason: None });
    }

    /// It doesn't, for this reason (shown inside only; no secrets).
    pub fn failed(&self, reason: impl Into<String>) {
        self.set(State { ok: false, reason: Some(reason.into()) });
    }

    fn set(&self, state: State) {
        lock(&self.checks).insert(self.name, state);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A map insert can't leave the map torn, so a poisoned lock is still good.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
