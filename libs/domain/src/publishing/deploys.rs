//! References between the files of a deployed site, the files that a deploy announces ([`manifest`]), those that outlast
//! their deploy ([`kept_files`]), and the [`report`] of a deploy.
//!
//! Every file is served at its own path, so references work as they were written. Only those to images and fonts are
//! replaced, by URLs by content: [`html`] and [`css`] find them, and [`links`] resolves them.

pub mod css;
pub mod html;
pub mod kept_files;
pub mod links;
pub mod manifest;
pub mod report;

/// Larger style sheets are served unchanged.
pub const CSS_BYTES_MAX: usize = 4 << 20;
