//! Messages and headers between services: jobs, events, signals, drafts of forms and the edge's headers.
//!
//! Their shapes are locked by snapshot tests, because the two ends are deployed at different times.

pub mod edge;
pub mod events;
pub mod form_draft;
pub mod jobs;
pub mod signals;

pub use form_draft::FormDraft;
pub use jobs::Job;
pub use signals::{Change, DatedSignal, Signal};
