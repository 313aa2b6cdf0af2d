//! Sites from a zip: how far each deploy is. What it holds stands in [`files`], what it did to pages in [`undo`].

mod deploy;
pub mod files;
pub mod undo;

pub use deploy::{
    Deploy, Status, count_open, delete_abandoned, find_deploy, finish_deploy, insert_deploy, lease_deploy,
    update_progress, update_rolled_back, update_uploaded,
};
