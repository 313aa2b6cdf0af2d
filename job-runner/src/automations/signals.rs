//! Publishes signals of runs in batches. A lost one costs at most the interval of a poll.

use std::collections::BTreeSet;

use contract::Signal;
use tokio::sync::mpsc;

use crate::state::JobState;

/// Signals merged into one publication.
const BATCH: usize = 512;

/// Publishes until every sender is dropped.
pub(super) async fn run(state: JobState, mut signals: mpsc::UnboundedReceiver<Signal>) {
    let mut batch = Vec::with_capacity(BATCH);
    while signals.recv_many(&mut batch, BATCH).await > 0 {
        if let Err(error) = state.bus.publish_all(&merged(batch.drain(..))).await {
            tracing::debug!(%error, "publishing signals of runs failed; polls find what they announced");
        }
    }
}

/// Merges signals that name accounts or runs, and leaves out repeated ones. The others keep their order.
fn merged(signals: impl Iterator<Item = Signal>) -> Vec<Signal> {
    let (mut accounts, mut runs, mut merged) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for signal in signals {
        match signal {
            Signal::RunsDue { account_ids } => accounts.extend(account_ids),
            Signal::RunsAnswered { run_ids } => runs.extend(run_ids),
            other if merged.contains(&other) => {}
            other => merged.push(other),
        }
    }
    if !accounts.is_empty() {
        merged.push(Signal::RunsDue { account_ids: accounts.into_iter().collect() });
    }
    if !runs.is_empty() {
        merged.push(Signal::RunsAnswered { run_ids: runs.into_iter().collect() });
    }
    merged
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn signals_are_merged_and_repeated_ones_left_out() {
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let due = |ids: &[Uuid]| Signal::RunsDue { account_ids: ids.to_vec() };
        let answered = |ids: &[Uuid]| Signal::RunsAnswered { run_ids: ids.to_vec() };
        let signals =
            [answered(&[two]), due(&[one]), Signal::TriggersDue, due(&[two, one]), Signal::TriggersDue];
        assert_eq!(merged(signals.into_iter()), [Signal::TriggersDue, due(&[one, two]), answered(&[two])]);
    }
}
