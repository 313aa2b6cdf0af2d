//! Walks one claimed run and stores how the walk ended.
//!
//! Evaluating expressions is CPU-bound. A walk of a definition of at most 2 KB without loops evaluates for
//! milliseconds between two waits (0.7 ms for the worst expression, of which 2 KB hold about fifty) and stays on the threads
//! of the runtime. Any other walk gets a thread of its own from the blocking pool: there the operating system divides the
//! processor between walks, so one that computes for seconds delays neither other walks nor the runtime.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use automation::execution::{Journal, Outcome, Recorded, RunFacts, StepStatus};
use automation::masking::Masking;
use contract::Signal;
use domain::Transient as _;
use domain::automations::{CLAIMS_MAX, ENV_PURPOSE, STEP_PURPOSE};
use domain::encryption::MasterKey;
use futures::FutureExt;
use futures::future::OptionFuture;
use serde_json::{Map, Value};
use service::admission::Admission;
use store::automations::{ClaimedRun, JournalRow, RunEnd, RunResult, list_journal, release_runs};
use tokio::sync::mpsc;
use tracing::Instrument;
use uuid::Uuid;

use super::completions::CompletionWriter;
use super::definitions::Version;
use super::held_runs::HeldRun;
use super::permits::RunPermit;
use super::run_context::{LinkMasking, RunContext, check_plan};
use super::run_effects::RunEffects;
use crate::state::JobState;

/// A claimed run with everything that its walk needs.
pub(super) struct LoadedRun {
    pub(super) run: ClaimedRun,
    /// Or why it can't be walked.
    pub(super) version: Result<Arc<Version>, String>,
    pub(super) held: HeldRun,
    pub(super) permit: RunPermit,
}

/// What all walks use.
#[derive(Clone)]
pub(super) struct Walker {
    pub(super) state: JobState,
    pub(super) writer: CompletionWriter,
    pub(super) signals: mpsc::UnboundedSender<Signal>,
    /// Limits the heavy walks of each account.
    pub(super) heavy_walks: Admission<Uuid>,
    /// Receives the account when a walk of a run with a concurrency limit ends, so that the next one can be claimed.
    pub(super) ended_limited: mpsc::UnboundedSender<Uuid>,
}

impl Walker {
    /// Walks a run as far as it goes now, and waits until its end is stored.
    pub(super) async fn execute(self, loaded: LoadedRun) {
        let LoadedRun { run, version, held, mut permit } = loaded;
        let span = tracing::info_span!("run", run.id = %run.claim.run_id, automation.id = %run.automation_id);
        service::telemetry::continue_from(&span, run.traceparent.as_deref());
        let account_id = run.account_id;
        let is_limited = version.as_ref().is_ok_and(|version| version.definition.concurrency.is_some());
        let walking = async {
            let is_heavy = version.as_ref().is_ok_and(|version| version.is_heavy);
            let admitting = OptionFuture::from(is_heavy.then(|| self.heavy_walks.acquire(account_id)));
            let _permit = admitting.await;
            let Some(journal) = self.load_journal(&run).await else { return };
            let (effects, facts) = self.prepare(&run);
            let ready = facts.and_then(|facts| {
                let version = version?;
                check_plan(&version.definition, env_count(&facts), run.plan)?;
                let journal = read_journal(journal, &self.state.master_key)?;
                Ok((version, facts, journal))
            });
            let effects = Arc::new(effects);
            let outcome = match ready {
                Ok((version, facts, journal)) => {
                    let walk = Walk { version, facts, journal, effects: Arc::clone(&effects) };
                    walk.run(&held).await
                }
                Err(message) => Outcome::Error { path: String::new(), message },
            };
            permit.release_account();
            store_end(&effects, outcome).await;
        };
        if held.stop.run_until_cancelled(walking.instrument(span)).await.is_none() {
            tracing::debug!(run.id = %held.claim.run_id, "stopped a run that is no longer this process's, or at shutdown");
        }
        drop((held, permit));
        if is_limited {
            let _claiming_has_ended = self.ended_limited.send(account_id);
        }
    }

    /// Returns the stored steps. `None`: they can't be loaded now, and the run is claimed again.
    async fn load_journal(&self, run: &ClaimedRun) -> Option<Vec<JournalRow>> {
        if !run.has_begun {
            return Some(Vec::new());
        }
        let loading = async {
            let mut conn = store::acquire(&self.state.automations_db).await?;
            list_journal(&mut conn, &[run.claim.run_id]).await
        };
        let error = match loading.await {
            Ok(rows) => return Some(rows),
            Err(error) => error,
        };
        tracing::warn!(%error, run.id = %run.claim.run_id, "loading the steps of a run failed; it is claimed again");
        // The claim counts if the steps themselves are the reason, so that the run ends after a few of them.
        if error.is_transient() && !error.is_statement_timeout() {
            let releasing = async {
                let mut conn = store::acquire(&self.state.automations_db).await?;
                release_runs(&mut conn, &[run.claim], self.state.clock.now()).await
            };
            if let Err(error) = releasing.await {
                tracing::warn!(%error, run.id = %run.claim.run_id, "releasing a run failed; it is claimed again after its lease");
            }
        }
        None
    }

    /// Returns the run's effects, and what expressions read or why the run can't be walked.
    fn prepare(&self, run: &ClaimedRun) -> (RunEffects, Result<RunFacts, String>) {
        let env = open_env(run.sealed_env.as_deref(), &self.state.master_key);
        let values = env.iter().flat_map(|env| env.values()).filter_map(Value::as_str);
        let context = RunContext {
            state: self.state.clone(),
            claim: run.claim,
            account_id: run.account_id,
            plan: run.plan,
            automation_id: run.automation_id,
            depth: run.depth,
            is_test: run.is_test,
            traceparent: run.traceparent.clone(),
            masking: Masking::new(values),
            link_masking: LinkMasking::default(),
            signals: self.signals.clone(),
        };
        let effects = RunEffects::new(context, self.writer.clone(), run.trigger_type == "http");
        let facts = if run.is_suspended {
            Err("the account is suspended".to_owned())
        } else if let Some(reason) = &run.unreadable {
            Err(format!("what started the run can't be read: {reason}"))
        } else if run.claims > CLAIMS_MAX {
            Err(format!("stopped {CLAIMS_MAX} times without completing a step, so it is not tried again"))
        } else {
            env.map(|env| RunFacts {
                id: run.claim.run_id,
                started_at: run.started_at,
                is_test: run.is_test,
                trigger: Arc::new(run.trigger.clone()),
                env: Arc::new(Value::Object(env)),
                resumed: run.resumed.as_ref().and_then(read_resumed),
            })
        };
        (effects, facts)
    }
}

/// A run that is ready to be walked.
struct Walk {
    version: Arc<Version>,
    facts: RunFacts,
    journal: Journal,
    effects: Arc<RunEffects>,
}

impl Walk {
    /// Walks on a thread that fits the definition. A panic ends the run.
    async fn run(self, held: &HeldRun) -> Outcome {
        let walked = if self.version.is_brief {
            AssertUnwindSafe(self.walk()).catch_unwind().await.ok()
        } else {
            let (runtime, stop) = (tokio::runtime::Handle::current(), held.stop.clone());
            let span = tracing::Span::current();
            let walking = move || runtime.block_on(stop.run_until_cancelled(self.walk().instrument(span)));
            let walked = tokio::task::spawn_blocking(walking).await.ok();
            walked.map(|outcome| outcome.unwrap_or(Outcome::Lost))
        };
        walked.unwrap_or_else(|| {
            tracing::error!(run.id = %held.claim.run_id, "a walk panicked");
            let message = "an internal error stopped the run; it has been recorded for us".to_owned();
            Outcome::Error { path: String::new(), message }
        })
    }

    async fn walk(&self) -> Outcome {
        let Self { version, facts, journal, effects } = self;
        automation::execution::run(&version.definition, facts, journal, &version.compiled, &**effects).await
    }
}

async fn store_end(effects: &RunEffects, outcome: Outcome) {
    let context = effects.context();
    let result = match outcome {
        Outcome::Success { message } => {
            RunResult::Success { message: message.map(|message| context.text(&message)) }
        }
        Outcome::Error { path, message } => RunResult::Error { path, message: context.text(&message) },
        Outcome::Waiting { until, resume } => RunResult::Waiting { until, resume },
        Outcome::Lost => return,
    };
    let end = RunEnd { claim: context.claim, result, at: context.state.clock.now() };
    if !effects.end(end).await {
        tracing::debug!(run.id = %context.claim.run_id, "the end of a walk was not stored: the run is no longer ours");
    }
}

fn env_count(facts: &RunFacts) -> usize {
    facts.env.as_object().map_or(0, Map::len)
}

/// Returns the number and the payload of a used link.
fn read_resumed(resumed: &Value) -> Option<(u32, Value)> {
    let number = resumed.get("number")?.as_u64().and_then(|number| u32::try_from(number).ok())?;
    Some((number, resumed.get("payload").cloned().unwrap_or_default()))
}

/// Decrypts the automation's variables.
fn open_env(sealed: Option<&[u8]>, key: &MasterKey) -> Result<Map<String, Value>, String> {
    let Some(sealed) = sealed else { return Ok(Map::new()) };
    let opened = key.open(ENV_PURPOSE, sealed).map_err(|error| {
        tracing::error!(%error, "the variables of an automation can't be decrypted");
        "the variables can't be decrypted; save `env` again".to_owned()
    })?;
    serde_json::from_slice(&opened).map_err(|_| "the variables can't be read; save `env` again".to_owned())
}

fn read_journal(rows: Vec<JournalRow>, key: &MasterKey) -> Result<Journal, String> {
    let read = |row: JournalRow| {
        let unreadable = || format!("the stored result of step `{}` can't be read", row.path);
        let status = StepStatus::parse(&row.status).ok_or_else(unreadable)?;
        let output = match &row.sealed_output {
            None => row.output.map_err(|_| unreadable())?,
            Some(sealed) => {
                let opened = key.open(STEP_PURPOSE, sealed).ok();
                opened.and_then(|text| serde_json::from_slice(&text).ok()).ok_or_else(unreadable)?
            }
        };
        let attempts = row.attempts.unsigned_abs();
        Ok((row.path, Recorded { status, output, error: row.error, attempts }))
    };
    rows.into_iter().map(read).collect()
}
