//! Work for the job-runner.
//!
//! A variant whose shape changes gets a new version beside the old one: jobs written by yesterday's
//! services are still read today.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A command, carried out at least once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "job", rename_all = "snake_case")]
pub enum Job {
    /// Delete what is due of events whose account or site is gone. What that is stands in Postgres.
    PurgeEventsV1,
    /// Try to mail a request for help that is due. What it says stands in Postgres.
    MailHelpV1 {
        /// The request.
        help_id: Uuid,
    },
    /// Tell a webhook's owner by mail that it was switched off, if that is still to be told.
    MailWebhookV1 {
        /// The webhook, which may be gone by then.
        webhook_id: Uuid,
    },
    /// Mail a form's owner what was submitted.
    NotifyOwnerV1 {
        /// The submission, which may be gone by then.
        submission_id: Uuid,
    },
    /// Ask somebody by mail whether they want to read of an account's submissions.
    AskRecipientV1 {
        /// Who, of those that are to be asked.
        recipient_id: Uuid,
    },
}

impl Job {
    /// Names the work: while a job of this name waits or runs, queueing it again changes nothing.
    pub fn name(&self) -> String {
        match self {
            Self::PurgeEventsV1 => "event_purges".to_owned(),
            Self::MailHelpV1 { help_id } => format!("help:{help_id}"),
            Self::MailWebhookV1 { webhook_id } => format!("webhook_mail:{webhook_id}"),
            Self::NotifyOwnerV1 { submission_id } => format!("notification:{submission_id}"),
            Self::AskRecipientV1 { recipient_id } => format!("recipient:{recipient_id}"),
        }
    }
}
