//! The time zone of schedules that have none of their own: that of the account.

use automation::definition::Trigger;
use chrono::{DateTime, Utc};
use store::Conn;
use store::accounts::lock_timezone;
use store::automations::{advance_schedule, lock_pending_schedules};
use uuid::Uuid;
use web::Problem;

use super::definition::CheckedDefinition;
use crate::call::Call;

/// Schedules of one statement: a definition may have a megabyte.
const BATCH: i64 = 50;

/// Returns the account's time zone for a change of an automation in the same transaction. That of the caller may be
/// outdated, because credentials are cached.
pub(super) async fn timezone<S>(call: &Call<S>, tx: &mut Conn) -> Result<String, Problem> {
    let zone = lock_timezone(tx, call.account_id).await?;
    zone.ok_or_else(|| Problem::not_found("account"))
}

/// Computes again when the schedules without a zone of their own fire next, in the transaction that changes the account's
/// zone. One that is due already is left to the job-runner, which reads the new zone.
pub(in crate::api) async fn reschedule(
    tx: &mut Conn,
    account_id: Uuid,
    zone: &str,
    now: DateTime<Utc>,
) -> Result<(), Problem> {
    let mut after = Uuid::nil();
    loop {
        let schedules = lock_pending_schedules(tx, account_id, now, after, BATCH).await?;
        let Some((last, _)) = schedules.last() else { return Ok(()) };
        after = *last;
        for (id, definition) in schedules {
            // One that can't be read is reported when it is due.
            let Ok(definition) = CheckedDefinition::stored(&definition) else { continue };
            let is_of_account = matches!(
                &definition.definition.trigger,
                Trigger::Schedule(schedule) if schedule.timezone.is_none()
            );
            if is_of_account {
                advance_schedule(tx, account_id, id, definition.next_fire_at(zone, now)).await?;
            }
        }
    }
}
