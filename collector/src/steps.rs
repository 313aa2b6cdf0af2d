//! The pipeline's steps, one file each. Their order stands in [`crate::pipeline`].

mod check_quota;
mod drop_bots;
mod find_site;
mod name_visitor;
mod rate_limit;
mod write;

pub(crate) use check_quota::CheckQuota;
pub(crate) use drop_bots::DropBots;
pub(crate) use find_site::FindSite;
pub(crate) use name_visitor::NameVisitor;
pub(crate) use rate_limit::RateLimit;
pub(crate) use write::Write;
