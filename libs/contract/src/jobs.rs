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
    /// Returns the kind of the job, for metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::PurgeEventsV1 => "event_purges",
            Self::MailHelpV1 { .. } => "help",
            Self::MailWebhookV1 { .. } => "webhook_mail",
            Self::NotifyOwnerV1 { .. } => "notification",
            Self::AskRecipientV1 { .. } => "recipient",
            Self::MailDomainV1 { .. } => "domain_mail",
            Self::MailCertificateV1 { .. } => "certificate_mail",
            Self::MailAutomationV1 { .. } => "automation_mail",
        }
    }

    /// Returns the job's key: while a job with this key is queued or running, adding it again has no effect.
    pub fn name(&self) -> String {
        let id = match self {
            Self::PurgeEventsV1 => return self.kind().to_owned(),
            Self::MailHelpV1 { help_id: id }
            | Self::MailWebhookV1 { webhook_id: id }
            | Self::NotifyOwnerV1 { submission_id: id }
            | Self::AskRecipientV1 { recipient_id: id }
            | Self::MailDomainV1 { domain_id: id }
            | Self::MailCertificateV1 { domain_id: id }
            | Self::MailAutomationV1 { automation_id: id } => id,
        };
        format!("{}:{id}", self.kind())
    }
}
