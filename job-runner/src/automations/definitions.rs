//! Versions of definitions, parsed and compiled once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use automation::concurrency::RunConcurrency;
use automation::definition::{Action, AutomationDefinition};
use automation::execution::Compiled;
use serde_json::Value;
use store::Conn;
use store::automations::find_definition;
use uuid::Uuid;

/// Maximum size of all versions that are held, as JSON. The oldest make room for a new one.
const HELD_BYTES_MAX: usize = 32 << 20;
/// Maximum size of a definition, as JSON, whose walks stay on the threads of the runtime.
const BRIEF_BYTES_MAX: usize = 2 << 10;

/// One version of a definition. It never changes.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) definition: AutomationDefinition,
    pub(super) compiled: Compiled,
    /// Whether its evaluations between two waits take milliseconds, 40 at worst: it is small and has no loops.
    pub(super) is_brief: bool,
    /// Whether its walks last long or may collect much data: it is not brief, or waits for answers of other servers.
    pub(super) is_heavy: bool,
    concurrency: Option<RunConcurrency>,
}

impl Version {
    fn parse(text: &str) -> Result<Self, String> {
        let definition: AutomationDefinition = serde_json::from_str(text).map_err(|error| {
            format!("the definition can't be read any more: {error}; save the automation again")
        })?;
        let loops = |action: &Action| matches!(action, Action::ForEach(_) | Action::Transform(_));
        let fetches = |action: &Action| matches!(action, Action::Fetch(_));
        let steps = definition.all_steps();
        let is_brief = text.len() <= BRIEF_BYTES_MAX && !steps.iter().any(|(_, step)| loops(&step.action));
        let is_heavy = !is_brief || steps.iter().any(|(_, step)| fetches(&step.action));
        let concurrency = definition.concurrency.as_ref().map(RunConcurrency::new);
        Ok(Self { definition, compiled: Compiled::default(), is_brief, is_heavy, concurrency })
    }

    /// Returns the limit of active runs and the key under which a run counts.
    pub(super) fn concurrency(&self, trigger: &Value) -> Option<(i32, Option<String>)> {
        self.concurrency.as_ref().map(|concurrency| concurrency.of(trigger))
    }
}

type Key = (Uuid, Vec<u8>);

/// The versions in use, bounded by their size.
#[derive(Default)]
pub(super) struct Definitions(Mutex<Held>);

#[derive(Default)]
struct Held {
    versions: HashMap<Key, Result<Arc<Version>, String>>,
    /// Their keys and sizes, the oldest first.
    order: VecDeque<(Key, usize)>,
    bytes: usize,
}

impl Held {
    fn insert(&mut self, key: Key, version: Result<Arc<Version>, String>, bytes: usize) {
        if self.versions.insert(key.clone(), version).is_some() {
            return;
        }
        self.bytes += bytes;
        while self.bytes > HELD_BYTES_MAX
            && let Some((oldest, size)) = self.order.pop_front()
        {
            self.versions.remove(&oldest);
            self.bytes -= size;
        }
        self.order.push_back((key, bytes));
    }
}

impl Definitions {
    /// Returns a version. The inner error says why it can't be used, for the automation's owner.
    ///
    /// # Errors
    /// Postgres is unavailable.
    pub(super) async fn load(
        &self,
        conn: &mut Conn,
        account_id: Uuid,
        hash: &[u8],
    ) -> Result<Result<Arc<Version>, String>, store::Error> {
        let key = (account_id, hash.to_vec());
        if let Some(found) = self.held().versions.get(&key) {
            return Ok(found.clone());
        }
        let Some(text) = find_definition(conn, account_id, hash).await? else {
            return Ok(Err("the definition is no longer stored; save the automation again".to_owned()));
        };
        Ok(self.insert(key, &text))
    }

    /// Returns a version, given its text.
    pub(super) fn read(&self, account_id: Uuid, hash: &[u8], text: &str) -> Result<Arc<Version>, String> {
        let key = (account_id, hash.to_vec());
        let found = self.held().versions.get(&key).cloned();
        found.unwrap_or_else(|| self.insert(key, text))
    }

    fn insert(&self, key: Key, text: &str) -> Result<Arc<Version>, String> {
        let version = Version::parse(text).map(Arc::new);
        self.held().insert(key, version.clone(), text.len());
        version
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
