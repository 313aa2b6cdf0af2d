//! Logs on standard error; with an endpoint configured also traces, metrics and logs over OTLP. One trace spans all
//! services that a visitor's request passes through.

mod config;
mod export;
mod repeated_warnings;
mod setup;
mod state;
mod trace_context;

pub use config::{Config, Format};
pub use setup::{Guard, init};
pub use trace_context::{continue_from, extract, inject, traceparent};
