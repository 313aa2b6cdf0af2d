//! What a collector measures.

use domain::tracking::Dropped;
use service::metrics::{Counter, Gauge, Histogram, Instrument};

pub(crate) static EVENTS_ACCEPTED: Counter =
    Counter::new("collector_events_accepted_total", "Events that are durable in a segment.", &[]);

pub(crate) static EVENTS_DROPPED: Counter = Counter::new(
    "collector_events_dropped_total",
    "Events that are not counted, by reason.",
    &[("reason", || Dropped::ALL.map(Dropped::as_str).to_vec())],
);

pub(crate) static EVENTS_INSERTED: Counter =
    Counter::new("collector_events_inserted_total", "Events inserted into ClickHouse.", &[]);

pub(crate) static EVENTS_CHARGED: Counter =
    Counter::new("collector_events_charged_total", "Events charged to the month of their account.", &[]);

pub(crate) static EVENTS_WAITING: Gauge = Gauge::new(
    "collector_events_waiting",
    "Events that wait for an earlier one of the same page and its sequence number.",
);

pub(crate) static QUOTA_BLOCKS_LEASED: Counter = Counter::new(
    "collector_quota_blocks_leased_total",
    "Requests for a block of an account's monthly events, by result.",
    &[("result", || vec!["granted", "used_up", "unanswered"])],
);

pub(crate) static GROUP_COMMIT_SECONDS: Histogram =
    Histogram::new("collector_group_commit_seconds", "Duration of one write and sync of a group of events.");

pub(crate) static SEGMENT_INSERT_SECONDS: Histogram = Histogram::new(
    "collector_segment_insert_seconds",
    "Duration of the insert of one segment into ClickHouse.",
);

pub(crate) static VISITS_RECOMPUTE_SECONDS: Histogram = Histogram::new(
    "collector_visits_recompute_seconds",
    "Duration of the computation of the visits that a segment touches.",
);

pub(crate) static SEGMENT_UNSENT_BYTES: Gauge =
    Gauge::new("collector_segment_unsent_bytes", "Bytes of segments that are not yet in ClickHouse.");

pub(crate) static SEGMENT_MAX_BYTES: Gauge = Gauge::new(
    "collector_segment_max_bytes",
    "The limit of segments.max_unsent_bytes, beyond which events are dropped.",
);

pub(crate) static SEGMENT_FREE_BYTES: Gauge =
    Gauge::new("collector_segment_free_bytes", "Free bytes of the file system with the folder of segments.");

pub(crate) static SEGMENT_OLDEST_SECONDS: Gauge = Gauge::new(
    "collector_segment_oldest_seconds",
    "Age of the oldest segment that is not yet in ClickHouse.",
);

pub(crate) static SEGMENTS_REFUSED: Counter = Counter::new(
    "collector_segments_refused_total",
    "Segments that ClickHouse refuses, which are kept for the operator.",
    &[],
);

pub(crate) static INSERTS_FAILED: Counter =
    Counter::new("collector_inserts_failed_total", "Failed inserts of a segment, which are repeated.", &[]);

pub(crate) static RECORDS_SKIPPED: Counter =
    Counter::new("collector_records_skipped_total", "Damaged records of segments.", &[]);

pub(crate) static SALTS_RESTORED: Counter = Counter::new(
    "collector_salts_restored_total",
    "Salts of visitor ids that Postgres had lost and that were inserted again from a copy.",
    &[],
);

pub(crate) static SALTS_LOST: Counter = Counter::new(
    "collector_salts_lost_total",
    "Salts of visitor ids that Postgres had lost and of which there was no copy, so that a new one replaces each.",
    &[],
);

/// All instruments of this service.
pub(crate) static ALL: &[&dyn Instrument] = &[
    &EVENTS_ACCEPTED,
    &EVENTS_DROPPED,
    &EVENTS_INSERTED,
    &EVENTS_CHARGED,
    &EVENTS_WAITING,
    &QUOTA_BLOCKS_LEASED,
    &GROUP_COMMIT_SECONDS,
    &SEGMENT_INSERT_SECONDS,
    &VISITS_RECOMPUTE_SECONDS,
    &SEGMENT_UNSENT_BYTES,
    &SEGMENT_MAX_BYTES,
    &SEGMENT_FREE_BYTES,
    &SEGMENT_OLDEST_SECONDS,
    &SEGMENTS_REFUSED,
    &INSERTS_FAILED,
    &RECORDS_SKIPPED,
    &SALTS_RESTORED,
    &SALTS_LOST,
];
