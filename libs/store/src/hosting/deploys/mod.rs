//! Deploys of sites from a zip. [`files`] holds their files, [`sources`] those that they announced, [`kept_files`] those that
//! they kept from earlier deploys, [`previews`] the deploys that are not live yet, [`undo`] the changes they made to pages.

mod deploy;
pub mod files;
pub mod kept_files;
mod list;
mod message;
pub mod previews;
pub mod sources;
pub mod undo;

pub use deploy::{
    AbandonedDeploy, Deploy, FinishedDeploy, Status, count_open, delete_abandoned, find_deploy,
    finish_deploy, insert_deploy, lease_deploy, update_progress, update_rolled_back, update_stats,
    update_uploaded,
};
pub use list::list_deploys;
pub use message::update_message;
