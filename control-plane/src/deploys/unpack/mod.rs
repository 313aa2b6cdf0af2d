//! Reads the files of a site, from its zip or as announced, and rewrites their references. This blocks its thread, but for
//! the download of announced files.

mod announced;
mod archive;
mod charset;
mod rewrite;
mod site_files;
mod spool;
mod unpacker;

pub(super) use announced::AnnouncedFiles;
pub(super) use site_files::{Contents, FileLimits, SiteSources};
pub(super) use spool::{Span, Spool};
pub(super) use unpacker::{
    BuiltPage, UnpackError, UnpackOptions, UnpackedFile, UnpackedSite, page_title, unpack,
};
