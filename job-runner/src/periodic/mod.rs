//! Tasks that run at intervals, or when the next row is due.

pub(crate) mod expiry;
pub(crate) mod form_closing;
pub(crate) mod publishing;
pub(crate) mod queue_backlog;
pub(crate) mod retention;
pub(crate) mod sweep;
