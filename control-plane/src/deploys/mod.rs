//! Deploys: a zip is unpacked, rewritten and stored ([`build`]), published in one transaction ([`publish`]), at once or
//! after it was a [`preview`], and can be rolled back ([`rollback`]). A [`dry_run`] only says what publishing would do. The rules are in `domain::static_sites`, those for
//! references in `domain::deploys`.

mod admission;
mod build;
mod dry_run;
mod kept_files;
mod originals;
mod preview;
mod progress;
mod publish;
mod rollback;
mod site_changes;
mod site_state;
mod stored_files;
mod unpack;

pub use admission::DeployAdmission;
pub(crate) use build::{BuiltSite, Upload, build, build_unstored};
pub(crate) use dry_run::dry_run;
pub(crate) use preview::{Preview, build_stored, check_room, preview};
pub(crate) use progress::Progress;
pub(crate) use publish::{Published, PublishedPage, Source, publish};
pub(crate) use rollback::{RolledBackPage, rollback};
pub(crate) use stored_files::BuiltFile;
