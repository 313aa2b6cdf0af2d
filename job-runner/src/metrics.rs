//! What a job-runner measures.

mod deliveries_in_progress;

use domain::certificates::FailureCode;
use domain::forms::ClosedReason;
use service::metrics::{Counter, Gauge, Histogram, Instrument, ObservableGauge};
use store::mails::Kind;

pub(crate) use deliveries_in_progress::DeliveryInProgress;

/// Results of an attempt to deliver: `delivered`, or its error class.
pub(crate) const DELIVERY_RESULTS: [&str; 12] = [
    "delivered",
    "http_status",
    "unwritable",
    "interrupted",
    "own_address",
    "refused_target",
    "dns",
    "connect",
    "tls",
    "timeout",
    "too_large",
    "protocol",
];

pub(crate) static DELIVERIES_ATTEMPTED: Counter = Counter::new(
    "job_runner_deliveries_attempted_total",
    "Attempts to deliver an event to a webhook, by result.",
    &[("result", || DELIVERY_RESULTS.to_vec())],
);

pub(crate) static DELIVERY_SECONDS: Histogram = Histogram::new(
    "job_runner_delivery_seconds",
    "Duration of an attempt to deliver an event to a webhook, by result: delivered or failed.",
);

pub(crate) static DELIVERIES_IN_PROGRESS: ObservableGauge = ObservableGauge::new(
    "job_runner_deliveries_in_progress",
    "Attempts to deliver an event to a webhook that are under way in this process.",
    deliveries_in_progress::read,
);

pub(crate) static JOB_SECONDS: Histogram =
    Histogram::new("job_runner_job_seconds", "Duration of a job of the queue, by kind and result.");

pub(crate) static WEBHOOKS_DEACTIVATED: Counter = Counter::new(
    "job_runner_webhooks_deactivated_total",
    "Webhooks deactivated because their receiver is gone or fails, by reason.",
    &[("reason", || vec!["gone", "failing"])],
);

pub(crate) static MAILS_SENT: Counter = Counter::new(
    "job_runner_mails_sent_total",
    "Attempts to send an email, by kind and result.",
    &[("kind", || Kind::ALL.map(Kind::as_str).to_vec()), ("result", || vec!["mailed", "unwanted", "failed"])],
);

pub(crate) static AUTOMATION_RUNS_COMPLETED: Counter = Counter::new(
    "job_runner_automation_runs_completed_total",
    "Runs of automations that ended, wait, or were skipped at the plan's limit, by status.",
    &[("status", || vec!["success", "error", "waiting", "skipped"])],
);

pub(crate) static AUTOMATION_RUN_QUEUE_SECONDS: Histogram = Histogram::new(
    "job_runner_automation_run_queue_seconds",
    "Time from the moment that a run was due until it was claimed.",
);

pub(crate) static AUTOMATION_RUNS_DELETED: Counter = Counter::new(
    "job_runner_automation_runs_deleted_total",
    "Runs of automations deleted after their retention.",
    &[],
);

pub(crate) static CERTIFICATES: Gauge = Gauge::new("job_runner_certificates", "Certificates by state.");

pub(crate) static CERTIFICATES_MIN_LEFT_DAYS: Gauge = Gauge::new(
    "job_runner_certificates_min_left_days",
    "Days until the first certificate ends, by state. A state without certificates has no series.",
);

pub(crate) static CERTIFICATES_EXPIRING: Gauge = Gauge::new(
    "job_runner_certificates_expiring",
    "Unexpired certificates that end within seven and within 21 days.",
);

pub(crate) static CERTIFICATES_ORDERED: Counter = Counter::new(
    "job_runner_certificates_ordered_total",
    "Attempts to order a certificate, by result.",
    &[("result", || {
        let failures = FailureCode::ALL.map(FailureCode::as_str);
        [&["issued", "delayed", "lease_lost"][..], &failures].concat()
    })],
);

pub(crate) static QUEUE_DUE_ROWS: Gauge = Gauge::new(
    "job_runner_queue_due_rows",
    "Rows that are due or being worked on, by queue. One job-runner of all measures it.",
);

pub(crate) static QUEUE_OLDEST_SECONDS: Gauge = Gauge::new(
    "job_runner_queue_oldest_seconds",
    "Time since the oldest row of a queue became due. One job-runner of all measures it.",
);

pub(crate) static DOMAIN_CHECKS: Counter =
    Counter::new("job_runner_domain_checks_total", "Checks of a custom domain's DNS records.", &[]);

pub(crate) static FORMS_CLOSED: Counter = Counter::new(
    "job_runner_forms_closed_total",
    "Forms closed, by reason.",
    &[("reason", || [ClosedReason::Closed, ClosedReason::Full].map(ClosedReason::as_str).to_vec())],
);

pub(crate) static PAGES_PUBLISHED: Counter =
    Counter::new("job_runner_pages_published_total", "Pages published at their scheduled time.", &[]);

pub(crate) static UNREADABLE_MESSAGES_POSTPONED: Counter = Counter::new(
    "job_runner_unreadable_messages_postponed_total",
    "Rows of the outbox that this version can't read and has postponed, by message.",
    &[("message", || vec!["signal", "job"])],
);

pub(crate) static BLOBS_DELETED: Counter =
    Counter::new("job_runner_blobs_deleted_total", "Files deleted from the object store.", &[]);

pub(crate) static BLOBS_POSTPONED: Counter = Counter::new(
    "job_runner_blobs_postponed_total",
    "Deletions of a file that the object store failed, which are repeated.",
    &[],
);

pub(crate) static BLOBS_ORPHANED: Counter =
    Counter::new("job_runner_blobs_orphaned_total", "Files without a row, deleted by the sweep.", &[]);

pub(crate) static KEPT_FILES_DELETED: Counter = Counter::new(
    "job_runner_kept_files_deleted_total",
    "Files of former deploys deleted after their retention.",
    &[],
);

pub(crate) static PREVIEWS_EXPIRED: Counter =
    Counter::new("job_runner_previews_expired_total", "Previews that ended.", &[]);

pub(crate) static UPLOADS_EXPIRED: Counter =
    Counter::new("job_runner_uploads_expired_total", "Signed uploads that were never completed.", &[]);

pub(crate) static FORM_FILES_EXPIRED: Counter = Counter::new(
    "job_runner_form_files_expired_total",
    "Files uploaded to a form that was never submitted.",
    &[],
);

pub(crate) static TRIALS_PURGED: Counter =
    Counter::new("job_runner_trials_purged_total", "Trials deleted after their time.", &[]);

pub(crate) static EVENTS_PURGED: Counter =
    Counter::new("job_runner_events_purged_total", "Analytics sites whose events were deleted.", &[]);

pub(crate) static SPAM_PURGED: Counter = Counter::new(
    "job_runner_spam_purged_total",
    "Submissions filed as spam, deleted after their retention.",
    &[],
);

pub(crate) static ARCHIVES_DELETED: Counter = Counter::new(
    "job_runner_archives_deleted_total",
    "Archives of entries deleted after their retention.",
    &[],
);

pub(crate) static ACTIVITY_ROWS_DELETED: Counter = Counter::new(
    "job_runner_activity_rows_deleted_total",
    "Rows of the logs of changes deleted after their retention.",
    &[],
);

pub(crate) static IDEMPOTENCY_RECORDS_DELETED: Counter = Counter::new(
    "job_runner_idempotency_records_deleted_total",
    "Stored responses of idempotent calls deleted after their retention.",
    &[],
);

/// All instruments of this service.
pub(crate) static ALL: &[&dyn Instrument] = &[
    &DELIVERIES_ATTEMPTED,
    &DELIVERY_SECONDS,
    &DELIVERIES_IN_PROGRESS,
    &JOB_SECONDS,
    &WEBHOOKS_DEACTIVATED,
    &MAILS_SENT,
    &AUTOMATION_RUNS_COMPLETED,
    &AUTOMATION_RUN_QUEUE_SECONDS,
    &AUTOMATION_RUNS_DELETED,
    &CERTIFICATES,
    &CERTIFICATES_MIN_LEFT_DAYS,
    &CERTIFICATES_EXPIRING,
    &CERTIFICATES_ORDERED,
    &QUEUE_DUE_ROWS,
    &QUEUE_OLDEST_SECONDS,
    &DOMAIN_CHECKS,
    &FORMS_CLOSED,
    &PAGES_PUBLISHED,
    &UNREADABLE_MESSAGES_POSTPONED,
    &BLOBS_DELETED,
    &BLOBS_POSTPONED,
    &BLOBS_ORPHANED,
    &KEPT_FILES_DELETED,
    &PREVIEWS_EXPIRED,
    &UPLOADS_EXPIRED,
    &FORM_FILES_EXPIRED,
    &TRIALS_PURGED,
    &EVENTS_PURGED,
    &SPAM_PURGED,
    &ARCHIVES_DELETED,
    &ACTIVITY_ROWS_DELETED,
    &IDEMPOTENCY_RECORDS_DELETED,
];
