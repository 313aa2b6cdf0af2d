//! Client connections: accepts and limits them, and routes their requests.

mod client_stream;
mod coalescing_writer;
mod connection_task;
mod connections;
mod counting_writer;
mod fast_path;
pub(crate) mod listener;
mod min_rate_body;
mod proxy_protocol;
mod request_scheme;
pub(crate) mod router;
mod service;
mod strict_transport;
mod tracked_body;
