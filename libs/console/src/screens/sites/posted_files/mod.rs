//! Files that forms carry from browsers without scripts: one file, or a whole folder, which becomes a zip.

mod folder;
mod parts;

pub(super) use folder::read_folder;
pub(super) use parts::{PostedFile, PostedParts, read_file};
