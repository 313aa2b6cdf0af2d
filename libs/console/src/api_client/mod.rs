//! Calls the API in process, through the router that serves HTTP and with the viewer's session. So every right, limit,
//! validation and metric is that of the API, and no screen has a query or a rule of its own.

mod api_refusal;
mod call;
mod client;
pub(crate) mod operations;

pub(crate) use api_refusal::{FieldProblem, Refusal};
pub(crate) use call::Call;
pub(crate) use client::ApiClient;

/// The answer to a call: the body, or why the API refused it.
pub(crate) type Answer = Result<serde_json::Value, Refusal>;
