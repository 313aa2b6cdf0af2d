//! What an edge measures. Decision: `edge-server/docs/0019-metrics.md`.

mod caches;
mod measured_cache;
mod open_connections;
mod responses;

use domain::honeypot::reasons;
use service::metrics::{
    Counter, FastCounterTable, FastCounters, Gauge, Histogram, Instrument, ObservableGauge,
};

pub(crate) use caches::CacheName;
pub(crate) use open_connections::OpenConnection;
pub(crate) use responses::{HostLabel, count_response};

pub(crate) static CONNECTIONS: ObservableGauge =
    ObservableGauge::new("edge_connections", "Open connections, by listener.", open_connections::read);

pub(crate) static CONNECTIONS_MAX: Gauge =
    Gauge::new("edge_connections_max", "The limit of open connections, of both listeners together.");

pub(crate) static RESPONSES: FastCounterTable<4, 5> = FastCounterTable::new(
    "edge_responses_total",
    "Responses, by kind of the requested host and class of the status.",
    ["host", "status"],
    ["base", "subdomain", "custom", "unknown"],
    ["1xx", "2xx", "3xx", "4xx", "5xx"],
);

pub(crate) static PAGE_MISS_SECONDS: Histogram =
    Histogram::new("edge_page_miss_seconds", "Time to find and render a page that was not in memory.");

pub(crate) static CACHE_BYTES: ObservableGauge =
    ObservableGauge::new("edge_cache_bytes", "About the memory of the entries of a cache.", caches::read);

pub(crate) static CACHE_EVICTIONS: FastCounters<{ CacheName::COUNT }> = FastCounters::new(
    "edge_cache_evictions_total",
    "Entries that a full cache dropped or did not take.",
    "cache",
    CacheName::NAMES,
);

pub(crate) static INVALIDATION_LAG_SECONDS: Histogram = Histogram::new(
    "edge_invalidation_lag_seconds",
    "Age of a change when this edge invalidates what it cached.",
);

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
pub(crate) static ALL: &[&dyn Instrument] = &[
    &CONNECTIONS,
    &CONNECTIONS_MAX,
    &RESPONSES,
    &PAGES_SERVED,
    &PAGE_MISS_SECONDS,
    &CACHE_BYTES,
    &CACHE_EVICTIONS,
    &INVALIDATION_LAG_SECONDS,
    &VIEWS_DROPPED,
    &SUBMISSIONS_FLAGGED,
    &UPLOADS_RECEIVED,
    &UPLOAD_RECEIVED_BYTES,
];
