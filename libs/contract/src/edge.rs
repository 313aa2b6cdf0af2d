//! Headers that the edge adds to requests to the inner services.
//!
//! Inner services listen on a private port. They trust these headers only together with the token of the edge;
//! otherwise the client's address is that of the connection.

/// Beginnings of paths under which a GET changes something: it runs an automation or ends a sign-in. It is never repeated.
pub const PATHS_WITH_EFFECTS: [&str; 3] = ["/api/automations/run/", "/api/automations/resume/", "/api/auth/"];

/// Proves that the request comes from an edge of this installation.
pub const TOKEN: &str = "x-edge-token";
/// The client's IP address as seen by the edge.
pub const CLIENT_IP: &str = "x-client-ip";
/// Time of an event (RFC 3339), for importing historical events. The edge never forwards it: a client must have the
/// token and call the collector directly.
pub const EVENT_TIME: &str = "x-event-time";
/// Request id, created or forwarded by the edge.
pub const REQUEST_ID: &str = "x-request-id";
