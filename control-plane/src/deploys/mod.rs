//! Sites from zips: unpacked, rewritten and stored ([`build`]), then published at once or not at all ([`publish`]).

mod archive;
mod build;
mod documents;
mod progress;
mod publish;
mod undo;
mod unpack;

pub(crate) use build::{BuiltFile, Site, build};
pub(crate) use progress::Progress;
pub(crate) use publish::{PublishedPage, publish};
pub(crate) use undo::{UndonePage, undo};
