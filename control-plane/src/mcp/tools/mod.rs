//! The tools: which there are, which a caller sees, and which operation a name stands for.

mod brief_schema;
mod class;
mod defaults;
mod list;
mod own;
mod search;

pub(super) use class::Class;
pub(super) use list::{Target, Tools};
pub(super) use search::describe;
