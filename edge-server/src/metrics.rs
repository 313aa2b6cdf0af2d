//! What an edge measures.

use domain::honeypot::reasons;
use service::metrics::{Counter, FastCounters, Instrument};

pub(crate) static PAGES_SERVED: FastCounters<3> = FastCounters::new(
    "edge_pages_served_total",
    "Pages served, by where they came from.",
    "from",
    ["hit", "miss", "stale"],
);

pub(crate) static VIEWS_DROPPED: Counter =
    Counter::new("edge_views_dropped_total", "Page views that could not be stored.", &[]);

pub(crate) static SUBMISSIONS_FLAGGED: Counter = Counter::new(
    "edge_submissions_flagged_total",
    "Signs of spam in submissions, by reason.",
    &[("reason", || {
        vec![reasons::HONEYPOT, reasons::TOO_FAST, reasons::TOKEN, reasons::PROOF, reasons::RATE]
    })],
);

pub(crate) static UPLOADS_RECEIVED: Counter =
    Counter::new("edge_uploads_received_total", "Files received by signed URLs.", &[]);

pub(crate) static UPLOAD_RECEIVED_BYTES: Counter =
    Counter::new("edge_upload_received_bytes_total", "Bytes of files received by signed URLs.", &[]);

/// All instruments of this service, beside those of HTTP.
pub(crate) static ALL: &[&dyn Instrument] =
    &[&PAGES_SERVED, &VIEWS_DROPPED, &SUBMISSIONS_FLAGGED, &UPLOADS_RECEIVED, &UPLOAD_RECEIVED_BYTES];
