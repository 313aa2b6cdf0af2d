//! Caches the automations behind trigger URLs for a second.
//!
//! The insertion of a run checks again that its automation is enabled, so an outdated entry starts no run of a disabled
//! or deleted one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use automation::concurrency::RunConcurrency;
use automation::definition::{Action, AutomationDefinition, HttpAuthType, Trigger};
use cache::{Bounds, StaleOnErrorCache};
use domain::Transient;
use domain::encryption::MasterKey;
use serde_json::Value;
use store::automations::{HttpAutomation, find_http_automation};
use uuid::Uuid;
use web::Problem;

use super::{EnvError, open_env};

const MAX_AGE: Duration = Duration::from_secs(1);
/// Approximate size of an entry.
const ENTRY_BYTES: u32 = 1_024;

/// An enabled automation with an http trigger.
#[derive(Debug)]
pub(crate) struct HttpTarget {
    pub(crate) account_id: Uuid,
    /// The account's limit of runs per month; -1 for any number.
    pub(crate) runs_limit: i64,
    pub(crate) slug: String,
    pub(crate) definition_hash: Vec<u8>,
    /// The only accepted method.
    pub(crate) method: &'static str,
    /// How a request proves that it knows the secret, and the secret.
    pub(crate) auth: Option<(HttpAuthType, String)>,
    /// Whether scripts of other sites may call it.
    pub(crate) cors: bool,
    /// Whether a step answers the request.
    pub(crate) has_respond: bool,
    pub(crate) concurrency: Option<RunConcurrency>,
}

/// Looks up and caches automations by id.
pub struct HttpTargets {
    db: store::Db,
    key: MasterKey,
    cache: StaleOnErrorCache<Uuid, Option<Arc<HttpTarget>>>,
}

#[derive(Debug, thiserror::Error)]
enum LookupError {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Env(#[from] EnvError),
}

impl Transient for LookupError {
    fn is_transient(&self) -> bool {
        match self {
            Self::Store(error) => error.is_transient(),
            Self::Env(error) => error.is_transient(),
        }
    }
}

impl HttpTargets {
    /// `key` decrypts variables.
    pub fn new(db: store::Db, key: MasterKey) -> Self {
        let bounds = Bounds { max_bytes: 32 << 20, max_age: MAX_AGE, retry_interval: MAX_AGE };
        Self { db, key, cache: StaleOnErrorCache::new(bounds, |_, _| ENTRY_BYTES) }
    }

    /// Returns the automation behind a trigger URL. `None` if there is none, it is disabled, or its account is suspended.
    ///
    /// # Errors
    /// Postgres is unavailable and the cached entry is stale.
    pub(crate) async fn find(&self, id: Uuid) -> Result<Option<Arc<HttpTarget>>, Problem> {
        if let Some(target) = self.cache.peek(&id, Instant::now()) {
            return Ok(target);
        }
        let look_up = Box::pin(async {
            let mut conn = store::acquire(&self.db).await?;
            let found = find_http_automation(&mut conn, id).await?;
            drop(conn);
            Ok::<_, LookupError>(found.map(|found| self.target(found)).transpose()?.flatten().map(Arc::new))
        });
        let served = self.cache.get(&id, Instant::now(), look_up).await?;
        if served.stale { Err(Problem::nothing_changed()) } else { Ok(served.value) }
    }

    /// Removes an entry after a change. Other replicas drop it within a second.
    pub(crate) fn invalidate(&self, id: Uuid) {
        self.cache.remove(&id);
    }

    fn target(&self, found: HttpAutomation) -> Result<Option<HttpTarget>, EnvError> {
        if !found.is_enabled || found.is_suspended {
            return Ok(None);
        }
        let definition = serde_json::from_str::<Value>(&found.definition).unwrap_or_default();
        let Ok(definition) = AutomationDefinition::read(&definition) else {
            tracing::error!("the definition of an automation is unreadable");
            return Ok(None);
        };
        let Trigger::Http(http) = &definition.trigger else { return Ok(None) };
        let auth = match &http.auth {
            None => None,
            Some(auth) => {
                let mut env = open_env(&self.key, found.sealed_env.as_deref())?;
                // An empty secret is never proved.
                Some((auth.kind, env.remove(&auth.env).unwrap_or_default()))
            }
        };
        let is_respond = |action: &Action| matches!(action, Action::Respond(_));
        Ok(Some(HttpTarget {
            account_id: found.account_id,
            runs_limit: found.plan.limits().automation_runs_per_month,
            slug: found.slug,
            definition_hash: found.definition_hash,
            method: http.method.as_str(),
            auth,
            cors: http.cors,
            has_respond: definition.all_steps().iter().any(|(_, step)| is_respond(&step.action)),
            concurrency: definition.concurrency.as_ref().map(RunConcurrency::new),
        }))
    }
}
