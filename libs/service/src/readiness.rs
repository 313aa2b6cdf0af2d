//! Readiness: whether the service may receive traffic. Each part has a named check, and a service that is shutting down is
//! never ready. Stores are reported but don't count: without one, most requests still get a correct response, and taking
//! every instance out of service at once would help no client.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::Shutdown;
use crate::metrics::Gauge;

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
    #[serde(skip)]
    is_store: bool,
}

/// The response of `/readyz`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Whether all checks except those of stores pass and no shutdown is requested.
    pub ready: bool,
    shutting_down: bool,
    checks: BTreeMap<&'static str, State>,
}

static READY: Gauge = Gauge::new("webruntime_ready", "1 if the service may receive traffic, else 0.");
static SHUTTING_DOWN: Gauge =
    Gauge::new("webruntime_shutting_down", "1 while the service completes its last requests, else 0.");
static CHECK_PASSED: Gauge =
    Gauge::new("webruntime_check_passed", "1 if the last check passed, else 0, by check.");

impl Report {
    /// Sets the gauges of readiness to this report.
    pub(crate) fn record(&self) {
        READY.set(f64::from(u8::from(self.ready)), &[]);
        SHUTTING_DOWN.set(f64::from(u8::from(self.shutting_down)), &[]);
        let checks: Vec<_> = self.checks.iter().map(|(name, state)| ([("check", *name)], state.ok)).collect();
        CHECK_PASSED.set_all(checks.iter().map(|(label, ok)| (&label[..], f64::from(u8::from(*ok)))));
    }
}

impl Readiness {
    /// Ready until a check that is not of a store fails, or `shutdown` is requested.
    #[must_use]
    pub fn new(shutdown: &Shutdown) -> Self {
        Self { shutdown: shutdown.clone(), checks: Arc::default() }
    }

    /// Adds a check. It counts as failed until [`Check::ok`] is called.
    #[must_use]
    pub fn register(&self, name: &'static str) -> Check {
        self.add(name, false)
    }

    /// Adds a store, which is reported without an effect on readiness.
    #[must_use]
    pub fn register_store(&self, name: &'static str) -> Check {
        self.add(name, true)
    }

    fn add(&self, name: &'static str, is_store: bool) -> Check {
        let check = Check { name, is_store, checks: Arc::clone(&self.checks) };
        check.failed("not checked yet");
        check
    }

    /// Returns the current state of all checks.
    #[must_use]
    pub fn report(&self) -> Report {
        let checks = lock(&self.checks).clone();
        let shutting_down = self.shutdown.is_requested();
        Report {
            ready: !shutting_down && checks.values().all(|state| state.ok || state.is_store),
            shutting_down,
            checks,
        }
    }
}

/// The handle of one check, held by the component that uses the dependency.
#[derive(Clone, Debug)]
pub struct Check {
    name: &'static str,
    is_store: bool,
    checks: Arc<Mutex<BTreeMap<&'static str, State>>>,
}

impl Check {
    /// Reports that the dependency works.
    pub fn ok(&self) {
        self.set(true, None);
    }

    /// Reports that the dependency fails. `/readyz` shows the reason, so it must contain no secrets.
    pub fn failed(&self, reason: impl Into<String>) {
        self.set(false, Some(reason.into()));
    }

    fn set(&self, ok: bool, reason: Option<String>) {
        let state = State { ok, reason, is_store: self.is_store };
        lock(&self.checks).insert(self.name, state);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic can't leave the map inconsistent, so a poisoned lock is still usable.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
