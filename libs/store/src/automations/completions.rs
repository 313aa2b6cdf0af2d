//! Ends walks: many with one statement.

use chrono::{DateTime, Utc};
use sqlx::query_scalar;
use uuid::Uuid;

use super::Claim;
use crate::{Conn, Error};

/// How a walk ended.
#[derive(Debug, Clone, PartialEq)]
pub enum RunResult {
    /// The run succeeded.
    Success {
        /// The reason of a `stop` step.
        message: Option<String>,
    },
    /// The run failed.
    Error {
        /// Path of the failed step; empty if no step failed.
        path: String,
        /// Without values of variables.
        message: String,
    },
    /// It is due again later.
    Waiting {
        until: DateTime<Utc>,
        /// Number of the wait that its link ends.
        resume: Option<u32>,
    },
}

/// The end of a walk, to store.
#[derive(Debug, Clone)]
pub struct RunEnd {
    pub claim: Claim,
    pub result: RunResult,
    pub at: DateTime<Utc>,
}

impl RunEnd {
    fn status(&self) -> &'static str {
        match self.result {
            RunResult::Success { .. } => "success",
            RunResult::Error { .. } => "error",
            RunResult::Waiting { .. } => "waiting",
        }
    }

    fn until(&self) -> Option<DateTime<Utc>> {
        match self.result {
            RunResult::Waiting { until, .. } => Some(until),
            _ => None,
        }
    }
}

/// Ends walks of claimed runs, and deletes the encrypted outputs of those that have ended. Returns the runs that were
/// still the worker's.
pub async fn complete_runs(conn: &mut Conn, ends: &[RunEnd]) -> Result<Vec<Uuid>, Error> {
    let (mut numbers, mut errors, mut paths, mut messages) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for end in ends {
        let (number, error, path, message) = match &end.result {
            RunResult::Success { message } => (None, None, None, message.clone()),
            RunResult::Error { path, message } => (None, Some(message.clone()), Some(path.clone()), None),
            RunResult::Waiting { resume, .. } => {
                (resume.and_then(|number| i32::try_from(number).ok()), None, None, None)
            }
        };
        numbers.push(number);
        errors.push(error);
        paths.push(path);
        messages.push(message);
    }
    let completed = query_scalar!(
        r#"with ended as materialized (
               update automation_runs r
               set status = t.status, due_at = t.until, lease_id = null, resume_number = t.resume_number,
                   resumed = null, claims = 0, error = t.error, error_path = t.error_path, message = t.message,
                   finished_at = case when t.until is null then t.at end
               from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::int[], $6::text[], $7::text[],
                           $8::text[], $9::timestamptz[])
                    as t (id, lease_id, status, until, resume_number, error, error_path, message, at)
               where r.id = t.id and r.lease_id = t.lease_id and r.status = 'running'
               returning r.id, t.until
           ), forgotten as (
               update automation_steps s set sealed_output = null from ended e
               where s.run_id = e.id and e.until is null and s.sealed_output is not null
           )
           select id as "id!" from ended"#,
        &column(ends, |end| end.claim.run_id),
        &column(ends, |end| end.claim.lease_id),
        &column(ends, |end| end.status().to_owned()),
        &column(ends, RunEnd::until) as _,
        &numbers as _,
        &errors as _,
        &paths as _,
        &messages as _,
        &column(ends, |end| end.at),
    )
    .fetch_all(conn)
    .await?;
    Ok(completed)
}

fn column<T>(ends: &[RunEnd], field: impl Fn(&RunEnd) -> T) -> Vec<T> {
    ends.iter().map(field).collect()
}
