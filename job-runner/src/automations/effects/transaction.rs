//! The transaction of an effect: the effect, the lock of the run, and the record of its step.

use automation::execution::EffectCall;
use chrono::{DateTime, Utc};
use contract::{Change, Signal};
use domain::scopes::{Resource, Scope};
use serde_json::Value;
use store::activity::{Actor, ChangedResource, NewActivity, insert_activity};
use store::automations::{Authority, lock_run, store_steps};
use uuid::Uuid;

use super::abort::Abort;
use super::authority;
use crate::automations::RunContext;

/// An open transaction of a run.
pub(super) struct Transaction<'a> {
    pub(super) context: &'a RunContext,
    pub(super) tx: store::Tx,
    pub(super) authority: Authority,
    pub(super) now: DateTime<Utc>,
    /// Signals to send after the commit.
    pub(super) signals: Vec<Signal>,
}

impl Transaction<'_> {
    /// Checks what the key that saved the automation may do.
    pub(super) async fn check(&mut self, scope: Scope, kind: Resource, id: Uuid) -> Result<(), Abort> {
        let account_id = self.context.account_id;
        authority::check(&mut self.tx, account_id, &self.authority, scope, (kind, id)).await
    }

    /// Adds a change to the account's log, under the operation of the API that does the same.
    pub(super) async fn record(
        &mut self,
        operation: &str,
        resource: Option<ChangedResource<'_>>,
    ) -> Result<(), Abort> {
        let activity = NewActivity {
            at: self.now,
            actor: Actor::Automation(self.context.automation_id),
            operation,
            resource,
            request_id: None,
        };
        Ok(insert_activity(&mut self.tx, self.context.account_id, &activity).await?)
    }

    /// Publishes a change to the edges: reliably through the outbox, and after the commit over the bus.
    pub(super) async fn publish(&mut self, change: Change) -> Result<(), Abort> {
        let traceparent = self.context.traceparent.as_deref();
        let orders =
            store::outbox::insert_orders(&mut self.tx, &[], &[change], traceparent, self.now).await?;
        self.signals.extend(orders);
        Ok(())
    }
}

/// Returns what the run's steps may do, if the run is still this worker's. Keeps no lock: a long effect must not delay the
/// extension of the lease.
pub(super) async fn find_authority(context: &RunContext) -> Result<Authority, Abort> {
    let mut conn = store::acquire(&context.state.db).await?;
    lock_run(&mut conn, context.account_id, context.claim).await?.ok_or(Abort::Lost)
}

/// Checks that the run is still this worker's, stores the record of the step and commits.
pub(super) async fn finish(
    transaction: Transaction<'_>,
    call: &EffectCall,
    output: Value,
    is_recorded: bool,
) -> Result<Value, Abort> {
    let Transaction { context, mut tx, signals, .. } = transaction;
    if is_recorded {
        // From here to the commit the run is neither cancelled nor claimed by another worker.
        if lock_run(&mut tx, context.account_id, context.claim).await?.is_none() {
            store::rollback(tx).await?;
            return Err(Abort::Lost);
        }
        let row = context.step_row(call.record(output.clone()));
        store_steps(&mut tx, &[(context.claim, row)]).await?;
    }
    if let Err(error) = store::commit(tx).await {
        tracing::warn!(%error, step = %call.path, "the outcome of a step's commit is unknown; the journal decides");
        return Err(Abort::Lost);
    }
    for signal in signals {
        // The receiver is gone at the end of the process; what the signals announce is found without them.
        let _ended = context.signals.send(signal);
    }
    Ok(output)
}
