//! The fast path in front of hyper: simple requests over HTTP/1.1 for pages of sites and of forms.

mod request_head;
mod response_batch;
mod serve;

pub(crate) use serve::{Handoff, Protocol, serve};
