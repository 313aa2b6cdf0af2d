//! The outbox: what waits for the relay, and what no version could read.

use std::fmt;

use anyhow::Result;
use chrono::{DateTime, Utc};
use serde_json::json;
use store::Conn;
use store::outbox::{OutboxGroup, UnreadableRow, list_groups, list_unreadable, make_due};

use crate::audit::Operator;

/// Unreadable rows that are shown.
const MAX_UNREADABLE: usize = 20;

/// What is in the outbox.
#[derive(Debug)]
pub struct OutboxStatus {
    pub groups: Vec<OutboxGroup>,
    /// Up to twenty.
    pub unreadable: Vec<UnreadableRow>,
    read_at: DateTime<Utc>,
}

/// Reads the outbox.
pub async fn status(conn: &mut Conn, now: DateTime<Utc>) -> Result<OutboxStatus> {
    let groups = list_groups(conn, now).await?;
    let unreadable = list_unreadable(conn, MAX_UNREADABLE).await?;
    Ok(OutboxStatus { groups, unreadable, read_at: now })
}

/// Makes all postponed rows due now. Returns how many. The relay sends those that its version can read, and postpones the others
/// again.
pub async fn retry(conn: &mut Conn, operator: &Operator) -> Result<u64> {
    let rows = make_due(conn, operator.now).await?;
    operator.record(conn, "outbox retry", None, json!({ "rows": rows })).await?;
    Ok(rows)
}

impl fmt::Display for OutboxStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.groups.is_empty() {
            return f.write_str("The outbox is empty.");
        }
        write!(f, "{:<7} {:<20} {:>8} {:>8} {:>10}  oldest", "kind", "message", "rows", "due", "postponed")?;
        for group in &self.groups {
            let minutes = (self.read_at - group.oldest).num_minutes();
            write!(
                f,
                "\n{:<7} {:<20} {:>8} {:>8} {:>10}  {minutes} min ago",
                group.kind,
                group.message.as_deref().unwrap_or("-"),
                group.rows,
                group.due,
                group.rows - group.due
            )?;
        }
        for row in &self.unreadable {
            let message = row.message.as_deref().unwrap_or("-");
            let due = row.due_at.format("%Y-%m-%d %H:%M UTC");
            write!(
                f,
                "\nunreadable: {} {} ({message}), tried again {due}: {}",
                row.kind, row.id, row.reason
            )?;
        }
        Ok(())
    }
}
