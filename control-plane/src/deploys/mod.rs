//! Deploys: a zip is unpacked, rewritten and stored ([`build`]), published in one transaction ([`publish`]), and can
//! be rolled back ([`rollback`]). The rules are in `domain::static_sites`, those for references in `domain::deploys`.

mod admission;
mod announced;
mod archive;
mod build;
mod charset;
mod kept_files;
mod originals;
mod progress;
mod publish;
mod rewrite;
mod rollback;
mod site_files;
mod site_state;
mod spool;
mod unpack;

pub use admission::DeployAdmission;
pub(crate) use build::{BuiltFile, BuiltSite, Upload, build};
pub(crate) use progress::Progress;
pub(crate) use publish::{PublishedPage, publish};
pub(crate) use rollback::{RolledBackPage, rollback};
