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
    /// Look at what deliveries are due, of which this is one. Nobody orders it any more: their rows are enough.
    DeliverWebhookV1 {
        /// The delivery, which is also the `webhook-id` the receiver sees.
        delivery_id: Uuid,
    },
    /// Delete what is due of events whose account or site is gone. What that is stands in Postgres.
    PurgeEventsV1,
    /// Try to mail a request for help that is due. What it says stands in Postgres.
    MailHelpV1 {
        /// The request.
        help_id: Uuid,
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
            Self::DeliverWebhookV1 { delivery_id } => format!("delivery:{delivery_id}"),
            Self::PurgeEventsV1 => "event_purges".to_owned(),
            Self::MailHelpV1 { help_id } => format!("help:{help_id}"),
            Self::NotifyOwnerV1 { submission_id } => format!("notification:{submission_id}"),
            Self::AskRecipientV1 { recipient_id } => format!("recipient:{recipient_id}"),
        }
    }
}
