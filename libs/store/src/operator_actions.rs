//! The log of what operators changed. Over all accounts: it belongs to the installation.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{query, query_as, query_scalar};

use crate::{Conn, Error};

/// A change by an operator, to be stored in its transaction.
#[derive(Debug)]
pub struct NewAction<'a> {
    /// `user@host`, or the name that the operator gave.
    pub actor: &'a str,
    /// Such as `admin plan`.
    pub command: &'a str,
    /// The id of what was changed; `None` for everything.
    pub target: Option<&'a str>,
    /// Arguments and results, without secrets.
    pub detail: &'a Value,
    pub at: DateTime<Utc>,
}

/// A change by an operator.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    pub id: i64,
    pub at: DateTime<Utc>,
    pub actor: String,
    pub command: String,
    pub target: Option<String>,
    pub detail: Value,
}

/// Returns whether the migration that creates the log is applied.
pub async fn has_actions_table(conn: &mut Conn) -> Result<bool, Error> {
    let has_table = query_scalar("select to_regclass('operator_actions') is not null").fetch_one(conn);
    Ok(has_table.await?)
}

/// Inserts an action.
pub async fn insert_action(conn: &mut Conn, action: &NewAction<'_>) -> Result<(), Error> {
    query!(
        "insert into operator_actions (at, actor, command, target, detail) values ($1, $2, $3, $4, $5)",
        action.at,
        action.actor,
        action.command,
        action.target,
        action.detail,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the last actions, newest first, about one target or all.
pub async fn list_actions(conn: &mut Conn, target: Option<&str>, limit: i64) -> Result<Vec<Action>, Error> {
    let actions = query_as!(
        Action,
        "select id, at, actor, command, target, detail from operator_actions
         where $1::text is null or target = $1 order by id desc limit $2",
        target,
        limit,
    );
    Ok(actions.fetch_all(conn).await?)
}
