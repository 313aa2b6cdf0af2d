//! What the effects of one run know of it, and the rows that its records become.

use std::sync::{PoisonError, RwLock};

use automation::definition::{AutomationDefinition, StepType};
use automation::execution::StepRecord;
use automation::masking::Masking;
use contract::Signal;
use domain::automations::STEP_PURPOSE;
use domain::plans::{Plan, UNLIMITED};
use serde_json::Value;
use store::automations::{Claim, StepRow};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::state::JobState;

/// What the effects of one run know of it.
pub(crate) struct RunContext {
    pub(crate) state: JobState,
    pub(crate) claim: Claim,
    pub(crate) account_id: Uuid,
    /// The account's plan at the time of the claim.
    pub(crate) plan: Plan,
    pub(crate) automation_id: Uuid,
    /// Depth of the run in a chain of deliveries.
    pub(crate) depth: i16,
    pub(crate) is_test: bool,
    pub(crate) traceparent: Option<String>,
    /// Masks the automation's variables.
    pub(crate) masking: Masking,
    /// Masks the link that the run may wait for next.
    pub(crate) link_masking: LinkMasking,
    /// Signals for the bus, published in batches after the commit of what they announce.
    pub(crate) signals: mpsc::UnboundedSender<Signal>,
}

/// Masks the newest resume link of a run, because a reader of the log could use it. Earlier links can't be used any
/// more: a link is issued when the wait before it has ended.
#[derive(Debug, Default)]
pub(crate) struct LinkMasking(RwLock<Option<Masking>>);

impl LinkMasking {
    /// Masks a link from now on, whole and its token alone.
    pub(crate) fn set(&self, link: &str) {
        let token = link.rsplit('/').next().unwrap_or_default();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Masking::new([link, token]));
    }

    fn json(&self, value: &Value) -> Option<Value> {
        let masking = self.0.read().unwrap_or_else(PoisonError::into_inner);
        masking.as_ref().map(|masking| masking.json(value))
    }

    fn text(&self, text: &str) -> Option<String> {
        let masking = self.0.read().unwrap_or_else(PoisonError::into_inner);
        masking.as_ref().map(|masking| masking.text(text).into_owned())
    }
}

/// Checks a definition and the number of variables against the account's plan, which may have changed since they were
/// saved.
///
/// # Errors
/// The reason, for the automation's owner.
pub(super) fn check_plan(
    definition: &AutomationDefinition,
    env_vars: usize,
    plan: Plan,
) -> Result<(), String> {
    let limits = plan.limits();
    let steps = definition.all_steps();
    let fetches = steps.iter().filter(|(_, step)| step.action.kind() == StepType::Fetch).count();
    let counts = [
        ("steps", steps.len(), limits.automation_max_steps),
        ("fetch steps", fetches, limits.automation_max_fetch_steps),
        ("variables", env_vars, limits.automation_max_env_vars),
    ];
    for (noun, count, max) in counts {
        if max != UNLIMITED && i64::try_from(count).unwrap_or(i64::MAX) > max {
            return Err(format!("the plan allows {max} {noun}, this has {count}"));
        }
    }
    Ok(())
}

impl RunContext {
    /// Returns the row of a record. `input` and `output` are the log: without values of variables, and cut. If the
    /// logged output is not the real one, the real one is added encrypted, for later walks of the run.
    pub(crate) fn step_row(&self, record: StepRecord) -> StepRow {
        let output = self.logged(&record.output);
        let sealed_output = (output != record.output).then(|| {
            let text = record.output.to_string();
            self.state.master_key.seal(STEP_PURPOSE, self.state.rng.bytes(), text.as_bytes())
        });
        StepRow {
            path: record.path,
            position: i32::try_from(record.position).unwrap_or(i32::MAX),
            step_id: record.step_id,
            kind: record.kind.as_str(),
            status: record.status.as_str(),
            input: self.logged(&record.input),
            output,
            is_partial: sealed_output.is_some(),
            sealed_output,
            error: record.error.map(|error| self.text(&error)),
            attempts: i32::try_from(record.attempts).unwrap_or(i32::MAX),
            started_at: record.started_at,
            finished_at: self.state.clock.now(),
        }
    }

    fn logged(&self, value: &Value) -> Value {
        let masked = self.link_masking.json(value);
        self.masking.logged(masked.as_ref().unwrap_or(value))
    }

    /// Returns a text for the log: without values of variables and links, and without characters that Postgres can't
    /// store.
    pub(crate) fn text(&self, text: &str) -> String {
        let masked = self.link_masking.text(text);
        self.masking.text(masked.as_deref().unwrap_or(text)).replace('\0', "")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(steps: &Value) -> AutomationDefinition {
        AutomationDefinition::read(&json!({"trigger": {"type": "http"}, "steps": steps})).unwrap()
    }

    #[test]
    fn a_downgraded_account_can_not_run_what_its_plan_does_not_allow() {
        let set = |at: usize| json!({"id": format!("s{at}"), "type": "set", "values": {"a": 1}});
        let fetch = |at: usize| json!({"id": format!("f{at}"), "type": "fetch", "url": "https://x.example"});
        let steps = |count: usize| definition(&(0..count).map(set).collect());
        assert_eq!(check_plan(&steps(10), 2, Plan::Free), Ok(()));
        let refused = "the plan allows 10 steps, this has 11".to_owned();
        assert_eq!(check_plan(&steps(11), 0, Plan::Free), Err(refused));
        let nested = json!([{"id": "each", "type": "for_each", "items": [1], "steps": (0..3).map(fetch).collect::<Vec<_>>()}]);
        let refused = "the plan allows 3 variables, this has 4".to_owned();
        assert_eq!(check_plan(&steps(1), 4, Plan::Free), Err(refused));
        let refused = "the plan allows 2 fetch steps, this has 3".to_owned();
        assert_eq!(check_plan(&definition(&nested), 0, Plan::Free), Err(refused));
        assert_eq!(check_plan(&steps(200), 50, Plan::Scale), Ok(()));
    }

    #[test]
    fn a_reader_of_the_log_can_not_use_a_link() {
        let masking = LinkMasking::default();
        assert_eq!(masking.json(&json!("a")), None);
        let token = "0123456789abcdef0123456789abcdef";
        let link = format!("https://app.example/api/automations/resume/r/0/{token}");
        masking.set(&link);
        let logged =
            masking.json(&json!({"body": {"text": format!("Approve: {link}"), "token": token}})).unwrap();
        assert_eq!(logged, json!({"body": {"text": "Approve: ***", "token": "***"}}));
        assert_eq!(masking.text(&format!("`{link}` is no time")).unwrap(), "`***` is no time");
    }
}
