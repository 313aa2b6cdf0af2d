//! The log of what operators changed: each change inserts its row in its own transaction.

use chrono::{DateTime, Utc};
use serde_json::Value;
use store::operator_actions::{Action, NewAction, insert_action, list_actions};
use store::{Conn, Error};

/// The operator of a change, and its time.
#[derive(Debug, Clone)]
pub struct Operator {
    /// `user@host`, or the name that the operator gave.
    pub actor: String,
    pub now: DateTime<Utc>,
}

impl Operator {
    /// Stores what was changed. `detail` must not contain secrets.
    pub async fn record(
        &self,
        conn: &mut Conn,
        command: &str,
        target: Option<&str>,
        detail: Value,
    ) -> Result<(), Error> {
        let action = NewAction { actor: &self.actor, command, target, detail: &detail, at: self.now };
        insert_action(conn, &action).await
    }
}

/// Returns the last changes as lines, newest first, about one target or all.
pub async fn list(conn: &mut Conn, target: Option<&str>, limit: i64) -> Result<String, Error> {
    let actions = list_actions(conn, target, limit).await?;
    if actions.is_empty() {
        return Ok("Operators have changed nothing.".to_owned());
    }
    Ok(actions.iter().map(describe).collect::<Vec<_>>().join("\n"))
}

fn describe(action: &Action) -> String {
    format!(
        "{}  {}  {}  {}  {}",
        action.at.format("%Y-%m-%d %H:%M:%S UTC"),
        action.actor,
        action.command,
        action.target.as_deref().unwrap_or("-"),
        action.detail
    )
}
