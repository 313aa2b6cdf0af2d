//! Webhooks, and the deliveries of one.

mod list;
mod show;
mod view;
mod write;

pub(crate) use list::list;
pub(crate) use show::show;
pub(crate) use write::{create, retry, retry_failed, test};
