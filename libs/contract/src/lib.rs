//! Messages and headers between services: jobs, events, signals and the edge's headers.
//!
//! Their shapes are locked by snapshot tests, because the two ends are deployed at different times.

pub mod edge;
pub mod events;
pub mod jobs;
pub mod signals;

pub use jobs::Job;
pub use signals::{Change, DatedSignal, Signal};
