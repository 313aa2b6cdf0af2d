//! Files that forms carry from browsers without scripts: one file, or a whole folder, which becomes a zip.

mod folder;
mod multipart_form;

pub(super) use folder::read_folder;
pub(super) use multipart_form::{PostedFile, PostedParts, read_file};
