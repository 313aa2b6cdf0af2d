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

use crate::FieldError;
use crate::field_error::check_length;

/// Larger style sheets are served unchanged.
pub const CSS_BYTES_MAX: usize = 4 << 20;
/// Characters of a deploy's message.
pub const MESSAGE_CHARS_MAX: usize = 200;

/// Returns what is wrong with a deploy's message.
pub fn check_message(message: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_length(&mut errors, "message", message, 0, MESSAGE_CHARS_MAX);
    errors
}
