//! The submissions of a form: a list, and the one that is open.

mod mark;
mod show;
mod view;

pub(crate) use mark::mark;
pub(crate) use show::{list, read};
pub(super) use view::SubmissionView;
