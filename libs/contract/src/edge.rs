//! What the edge tells the inner services about a caller.
//!
//! Inner services listen privately. They believe these headers only beside the token that proves the edge
//! sent them; from anybody else the caller's address is the connection's.

/// Proves that the request comes from an edge of this installation.
pub const TOKEN: &str = "x-edge-token";
/// The visitor's IP address, as the edge saw it.
pub const CLIENT_IP: &str = "x-client-ip";
/// When an event happened, for loading the past (RFC 3339). No edge passes it on: it is for whoever has the token and
/// speaks to the collector itself.
pub const EVENT_TIME: &str = "x-event-time";
/// The request's id, made or kept by the edge.
pub const REQUEST_ID: &str = "x-request-id";
