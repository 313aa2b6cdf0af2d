//! What one service writes and another reads.
//!
//! Jobs, events, signals and the edge's headers. Their shapes are locked by snapshot tests, because the
//! two ends are deployed at different moments.

pub mod edge;
pub mod events;
pub mod jobs;
pub mod signals;

pub use jobs::Job;
pub use signals::{Change, Signal};
