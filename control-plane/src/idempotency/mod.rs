//! `Idempotency-Key`: a repeated POST returns the first response instead of running again.
//!
//! A call is identified by its account, credential, route and key. The first request leases a row, runs the handler
//! and stores the response there, encrypted with a key derived from the caller's. While it runs, repetitions get 409
//! with `Retry-After`; afterwards they get the stored response. The request body is hashed as it streams through, so
//! the route's own body limit applies and nothing is buffered here.
//!
//! Limits of the guarantee: if the process is killed between the handler's commit and the storing of the response,
//! the next attempt runs the call again. Responses that must not be final (5xx, rate limits, transport errors) are
//! not stored, so that a retry runs the call.

mod call;
mod digest;
mod service;
mod stored_response;

pub(crate) use service::IdempotencyLayer;
