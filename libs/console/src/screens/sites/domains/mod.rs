//! The custom domains of a site: the records that they need beside those found, and the steps to a certificate.

mod list;
mod record_slips;
mod steps;
mod write;

pub(super) use list::list;
pub(super) use steps::with_steps;
pub(super) use write::{check, create, remove, update};
