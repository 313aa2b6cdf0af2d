//! Integration tests of the edge: the service runs in this process on free ports, over real Postgres and Redis.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a panic fails the test")]

mod account_lifecycle;
mod addresses;
mod assets;
mod changes;
mod client;
mod connection_limits;
mod connections;
mod domains;
mod encodings;
mod entries;
mod fault_proxy;
mod files;
mod fixtures;
mod form_differential;
mod form_files;
mod form_pages;
mod former_names;
mod forms;
mod group_insert;
mod harness;
mod hosts;
mod idempotency;
mod isolation;
mod limited;
mod pages;
mod parser_differential;
mod postgres_outage;
mod proxy;
mod request_fuzz;
mod results;
mod short_urls;
mod smuggling;
mod spam;
mod stale;
mod submission_costs;
mod submissions;
mod suspended;
mod tracker_injection;
mod unresponsive_postgres;
mod uploads;
mod upstream;
mod views;
mod webhooks;
