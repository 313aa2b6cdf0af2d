//! Sites from a zip: what one may hold, which of its files are pages, and where each is served.
//!
//! A page is served under its slug, other files at the path they have in the zip. References between them were
//! written for the zip's paths, so they are rewritten: in HTML by [`html`], in CSS by [`css`], both by what
//! [`links`] makes of each.

pub mod css;
pub mod html;
pub mod layout;
pub mod links;
pub mod paths;

/// Most bytes of a zip.
pub const ZIP_BYTES_MAX: i64 = 100 << 20;
/// Most bytes of all that is in it.
pub const UNPACKED_BYTES_MAX: u64 = 500 << 20;
/// Most files in it.
pub const FILES_MAX: usize = 2_000;
/// Larger style sheets are served as they are.
pub const CSS_BYTES_MAX: usize = 4 << 20;
