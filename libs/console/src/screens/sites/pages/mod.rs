//! The pages of a site: a list, an editor, versions and entries.

mod editor;
mod entries;
mod list;
mod posted_page;
mod versions;
mod write;

pub(super) use editor::{new, show};
pub(super) use entries::{add_entry, delete_entry, restore_entries};
pub(super) use list::list;
pub(super) use versions::{compare_version, restore_version};
pub(super) use write::{create, delete, update};
