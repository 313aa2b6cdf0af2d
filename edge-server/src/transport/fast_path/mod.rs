//! The fast path in front of hyper: answers simple HTTP/1.1 requests for pages and files of sites, and for
//! forms.
//!
//! hyper builds a map of every request's headers and of every response's. For a browser's fifteen headers that costs
//! more than everything else a cache hit needs. The fast path parses the request head in place and assembles the
//! response from prepared lines. Any other request is handed to hyper, with all bytes that are not answered yet, and
//! hyper owns the connection from then on. So nothing here decides where a request ends: an answered request has no
//! body, and its head ends where hyper's own parser says.

mod handoff;
mod request_head;
mod response_batch;
mod serve;
mod watch;

pub(super) use handoff::{Handoff, Protocol};
pub(super) use serve::{Origin, serve};
