//! The email that tells an owner that the runs of an automation fail, and whether it was disabled.

use std::fmt::Write as _;

use domain::automations::{FAILURES_TO_DISABLE, FAILURES_TO_REPORT};
use store::Conn;
use store::automations::{Failing, find_failing};
use uuid::Uuid;

use crate::mail::Email;

pub(crate) async fn write(conn: &mut Conn, account_id: Uuid, id: Uuid) -> anyhow::Result<Option<Email>> {
    Ok(find_failing(conn, account_id, id).await?.map(|failing| email(id, failing)))
}

fn email(id: Uuid, failing: Failing) -> Email {
    let Failing { to, name, is_enabled, consecutive_failures, last_error, last_run_at } = failing;
    let mut text = match consecutive_failures {
        0 => format!("A run of your automation {name} failed. Later runs succeeded.\n\n"),
        1 => format!("A run of your automation {name} failed.\n\n"),
        count => format!("The last {count} runs of your automation {name} failed.\n\n"),
    };
    let when = last_run_at.format("%Y-%m-%d %H:%M UTC");
    let _infallible = writeln!(text, "Automation: {id}\nLast run: {when}");
    if let Some(error) = last_error {
        let _infallible = writeln!(text, "Last error: {error}");
    }
    let _infallible = writeln!(text, "\nThe steps of each run: GET /api/automations/{id}/logs?status=error");
    let _infallible = if is_enabled {
        let next = FAILURES_TO_REPORT.into_iter().find(|count| *count > consecutive_failures);
        let next = next.map_or_else(String::new, |count| {
            format!("the next mail follows after {count} failures in a row, and ")
        });
        writeln!(text, "It stays enabled; {next}after {FAILURES_TO_DISABLE} it is disabled.")
    } else {
        writeln!(
            text,
            "It is disabled and starts no more runs. When it is corrected, enable it again: \
             PUT /api/automations/{id} with {{\"enabled\": true}}."
        )
    };
    let subject = if is_enabled {
        format!("Your automation {name} fails")
    } else {
        format!("Your automation {name} was disabled")
    };
    Email {
        // The first and the tenth failure may happen in the same second.
        id: format!("{id}.{}.{consecutive_failures}", last_run_at.timestamp()),
        to: Some(to),
        reply_to: None,
        subject,
        text,
        written_at: last_run_at.into(),
    }
}
