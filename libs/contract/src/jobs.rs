//! Jobs of the job-runner.
//!
//! A change of a shape is a new variant beside the old one, so that jobs of the previous release can
//! still be read.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A command, executed at least once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "job", rename_all = "snake_case")]
pub enum Job {
    /// Deletes due events of deleted accounts and sites. Postgres holds the list.
    PurgeEventsV1,
    /// Sends a due help request by mail. Postgres holds its text.
    MailHelpV1 { help_id: Uuid },
    /// Notifies a webhook's owner by mail that it was deactivated, unless that was done.
    MailWebhookV1 {
        /// The webhook, which may be deleted by then.
        webhook_id: Uuid,
    },
    /// Notifies a form's owner of a submission by mail.
    NotifyOwnerV1 {
        /// The submission, which may be deleted by then.
        submission_id: Uuid,
    },
    /// Asks a recipient by mail to confirm the notifications of an account.
    AskRecipientV1 {
        /// The unconfirmed recipient.
        recipient_id: Uuid,
    },
    /// Tells a domain's owner by mail that its DNS records are gone.
    MailDomainV1 {
        /// The domain, which may be deleted by then.
        domain_id: Uuid,
    },
    /// Notifies a domain's owner by mail that its certificate ends soon because renewals fail.
    MailCertificateV1 {
        /// The domain, which may be deleted or have a new certificate by then.
        domain_id: Uuid,
    },
    /// Tells an automation's owner by mail that its runs fail.
    MailAutomationV1 {
        /// The automation, which may be deleted or succeed again by then.
        automation_id: Uuid,
    },
}

impl Job {
    /// Returns the job's key: while a job with this key is queued or running, adding it again has no effect.
    pub fn name(&self) -> String {
        match self {
            Self::PurgeEventsV1 => "event_purges".to_owned(),
            Self::MailHelpV1 { help_id } => format!("help:{help_id}"),
            Self::MailWebhookV1 { webhook_id } => format!("webhook_mail:{webhook_id}"),
            Self::NotifyOwnerV1 { submission_id } => format!("notification:{submission_id}"),
            Self::AskRecipientV1 { recipient_id } => format!("recipient:{recipient_id}"),
            Self::MailDomainV1 { domain_id } => format!("domain_mail:{domain_id}"),
            Self::MailCertificateV1 { domain_id } => format!("certificate_mail:{domain_id}"),
            Self::MailAutomationV1 { automation_id } => format!("automation_mail:{automation_id}"),
        }
    }
}
