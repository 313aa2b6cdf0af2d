//! The pages of forms: renders fields, answers and errors in the visitor's language.

pub(crate) mod cached_page;
mod conditional_css;
mod gzip_with_gap;
pub(super) mod languages;
mod look;
pub(crate) mod page;
pub(super) mod prefill;
pub(crate) mod presentation;
pub(crate) mod renderer;
pub(crate) mod view_model;
