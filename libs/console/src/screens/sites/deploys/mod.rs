//! The deploys of a site: uploads, what they would change, publication and rollback.

mod list;
mod show;
mod upload;
mod write;

pub(super) use list::list;
pub(super) use show::{plan, show};
pub(super) use upload::{begin, upload};
pub(super) use write::{delete, preview, publish, roll_back};
