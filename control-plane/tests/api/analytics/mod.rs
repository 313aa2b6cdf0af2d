//! Analytics: sites, and queries that are compared with a slow reference count in memory.

mod expected;
mod fixture;
mod overview;
mod query_helpers;
mod realtime;
mod reference_counts;
mod rejections;
mod settled_days;
mod site_lifecycle;
mod statement_counter;
mod traffic;
