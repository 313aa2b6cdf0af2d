//! Analytics sites, and the salts and counters of their events.

pub mod dropped_events;
pub mod retention_salts;
pub mod salts;
pub mod sites;
