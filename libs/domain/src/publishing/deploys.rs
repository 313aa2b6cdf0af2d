//! Deployed sites from a zip: limits, pages, and references between files.
//!
//! A page is served under its slug, other files under their path in the zip. References between them were written for
//! the zip's paths, so [`html`] and [`css`] rewrite them to what [`links`] resolves.

pub mod css;
pub mod html;
pub mod layout;
pub mod links;
pub mod paths;

/// Maximum size of a zip.
pub const ZIP_BYTES_MAX: i64 = 100 << 20;
/// Maximum size of the unpacked files.
pub const UNPACKED_BYTES_MAX: u64 = 500 << 20;
/// Maximum number of files.
pub const FILES_MAX: usize = 2_000;
/// Larger style sheets are served unchanged.
pub const CSS_BYTES_MAX: usize = 4 << 20;
