//! The submissions of a form: a list, and the one that is open with what it caused.

mod effects;
mod mark;
mod retry;
mod show;
mod view;

pub(crate) use mark::mark;
pub(crate) use retry::retry;
pub(crate) use show::{list, read};
pub(super) use view::SubmissionView;
