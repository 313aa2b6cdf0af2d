//! The log of what operators changed: a change of one transaction inserts its row there, and a longer one inserts a row when it
//! begins and one when it ends.

use std::time::Instant;

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use store::activity::{Actor, NewActivity, insert_activity};
use store::operator_actions::{Action, NewAction, has_actions_table, insert_action, list_actions};
use store::{Conn, Db, Error};

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
        insert_action(conn, &action).await?;
        // The owner sees a change of the account, but not the operator's name, arguments and results.
        let Some(account_id) = target.and_then(|target| target.parse().ok()) else { return Ok(()) };
        let activity = NewActivity {
            at: self.now,
            actor: Actor::Operator,
            operation: command,
            resource: None,
            request_id: None,
        };
        insert_activity(conn, account_id, &activity).await
    }
}

/// A change of more than one transaction. Its rows have the `state` `begun` and `ended` in their details; one without the
/// second was stopped.
#[derive(Debug)]
pub struct LongChange<'a> {
    operator: &'a Operator,
    command: &'static str,
    target: Option<&'a str>,
    began: Instant,
    is_recorded: bool,
}

impl<'a> LongChange<'a> {
    /// Inserts the first row, if the table exists: `migrate` creates it. `detail` is an object without secrets.
    ///
    /// # Errors
    /// The row can't be inserted. Then nothing may be changed.
    pub async fn begin(
        db: &Db,
        operator: &'a Operator,
        command: &'static str,
        target: Option<&'a str>,
        detail: Value,
    ) -> Result<Self> {
        let mut change = Self { operator, command, target, began: Instant::now(), is_recorded: false };
        let mut conn = store::acquire(db).await?;
        if has_actions_table(&mut conn).await? {
            change.record_begin(&mut conn, detail).await?;
        }
        Ok(change)
    }

    /// Inserts the first row if that was not possible before.
    pub(crate) async fn retry_begin(&mut self, db: &Db, detail: Value) -> Result<()> {
        if self.is_recorded {
            return Ok(());
        }
        let mut conn = store::acquire(db).await?;
        self.record_begin(&mut conn, detail).await
    }

    async fn record_begin(&mut self, conn: &mut Conn, detail: Value) -> Result<()> {
        let detail = with_state("begun", detail);
        self.operator.record(conn, self.command, self.target, detail).await?;
        self.is_recorded = true;
        Ok(())
    }

    /// Inserts the second row with `detail` of the result, or else the error, and returns the result. `detail` is an object
    /// without secrets.
    ///
    /// # Errors
    /// The result is an error, or the row can't be inserted.
    pub async fn end<T>(self, db: &Db, result: Result<T>, detail: impl FnOnce(&T) -> Value) -> Result<T> {
        let detail = match &result {
            Ok(done) => with_state("ended", detail(done)),
            Err(error) => with_state("ended", json!({ "error": format!("{error:#}") })),
        };
        let recorded = self.record_end(db, detail).await;
        let done = result?;
        recorded?;
        Ok(done)
    }

    async fn record_end(&self, db: &Db, detail: Value) -> Result<()> {
        let elapsed = TimeDelta::from_std(self.began.elapsed()).unwrap_or_default();
        let operator = Operator { actor: self.operator.actor.clone(), now: self.operator.now + elapsed };
        let mut conn = store::acquire(db).await?;
        if has_actions_table(&mut conn).await? {
            operator.record(&mut conn, self.command, self.target, detail).await?;
        }
        Ok(())
    }
}

fn with_state(state: &str, mut detail: Value) -> Value {
    if let Some(fields) = detail.as_object_mut() {
        fields.insert("state".to_owned(), state.into());
    }
    detail
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
