//! The steps of the pipeline, one file each, in the order of [`crate::pipeline`].

mod check_quota;
mod classify_source;
mod derive_visitor_id;
mod detect_loop;
mod drop_bots;
mod find_site;
mod honor_dnt;
mod locate;
mod order_events;
mod parse_user_agent;
mod rate_limit;
mod write;

pub(crate) use check_quota::CheckQuota;
pub(crate) use classify_source::classify_source;
pub(crate) use derive_visitor_id::{DeriveVisitorId, Salts, SealedCopies};
pub(crate) use detect_loop::detect_loop;
pub(crate) use drop_bots::DropBots;
pub(crate) use find_site::FindSite;
pub(crate) use honor_dnt::honor_dnt;
pub(crate) use locate::Locate;
pub(crate) use order_events::OrderEvents;
pub(crate) use parse_user_agent::ParseUserAgent;
pub(crate) use rate_limit::RateLimit;
pub(crate) use write::{Enrichment, Write};
