//! Hosted forms: cached, and rendered as pages that need no JavaScript.

pub(crate) mod cached_page;
pub(crate) mod challenges;
mod conditional_css;
pub(crate) mod embed;
pub(crate) mod form_cache;
pub(crate) mod handlers;
pub(crate) mod languages;
pub(crate) mod page;
mod prefill;
pub(crate) mod remembered;
pub(crate) mod results;
mod view_model;

pub(crate) use cached_page::Ready;
pub(crate) use form_cache::{Given, closed_reason, code_of, redirect_target, refusal};
pub(crate) use handlers::{after, ask, find, hit, show, thank};
pub(crate) use page::Presentation;
pub(crate) use remembered::Remembered;
