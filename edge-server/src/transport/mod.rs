//! Client connections: accepts and limits them, and routes their requests.

mod coalescing_writer;
mod connections;
mod counting_writer;
mod fast_path;
mod idle_list;
pub(crate) mod listener;
mod min_rate_body;
pub(crate) mod router;
mod service;
mod tracked_body;
