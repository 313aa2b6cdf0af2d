//! The HTTP layer that all endpoints share: responses, problems, extractors, and the registry of endpoints.
//!
//! Each endpoint gets its request id, response format, validation errors and entry in the API document from here.
//! Authentication belongs to the control plane, and behaviour to the handlers.

mod document;
mod drain_body;
mod edge;
mod extract;
mod frame;
mod idempotency;
mod listing;
mod meta;
mod nul_characters;
mod precondition;
mod problem;
mod registry;
mod reply;
mod with_headers;

pub use edge::{ClientIp, EdgeTrust, WeakEdgeToken};
pub use extract::{
    Json, JsonOfItems, OptionalJson, Path, Query, check_not_compressed, json_syntax_error, present,
    present_whole_number, read_id, read_item, shown_id, whole_number, whole_number_or_null,
};
pub use frame::{
    CompletedRequest, Frame, MetaSlot, RequestId, frame, incoming_request_id, is_valid_request_id,
};
pub use idempotency::IdempotencyKey;
pub use listing::{ListResponse, PageInfo, PaginationQuery, Sort};
pub use meta::{Meta, Usage, UsageCounter};
pub use nul_characters::field_error_of as nul_error;
pub use precondition::{IfMatch, etag, stale};
pub use problem::{Challenge, Code, Problem};
pub use registry::{Elsewhere, Endpoint, MAX_BODY_BYTES, Resource, Uncompressed, document_of, endpoints_of};
pub use reply::{Created, CreatedOrChanged, Deletion, DoneOrAccepted, Envelope, NextStep, Reply};
pub use with_headers::WithHeaders;
