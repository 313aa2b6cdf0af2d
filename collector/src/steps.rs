//! The pipeline's steps, one file each. Their order stands in [`crate::pipeline`].

mod check_quota;
mod classify_source;
mod drop_bots;
mod find_site;
mod heed_wishes;
mod locate;
mod name_visitor;
mod rate_limit;
mod read_agent;
mod write;

pub(crate) use check_quota::{CheckQuota, Counted};
pub(crate) use classify_source::classify_source;
pub(crate) use drop_bots::DropBots;
pub(crate) use find_site::{FindSite, Site};
pub(crate) use heed_wishes::heed_wishes;
pub(crate) use locate::Locate;
pub(crate) use name_visitor::{NameVisitor, Salts};
pub(crate) use rate_limit::RateLimit;
pub(crate) use read_agent::ReadAgent;
pub(crate) use write::{Findings, Write};
