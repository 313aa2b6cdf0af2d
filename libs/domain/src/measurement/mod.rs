//! Events, visitors, visits, and queries over them.

pub mod analytics;
pub mod sites;
pub mod sources;
pub mod tracking;
pub mod user_agents;
pub mod visitors;
pub mod visits;
