//! Hosted forms: caches them, and renders them as pages that need no JavaScript.

pub(crate) mod challenges;
pub(crate) mod closed;
pub(crate) mod drafts;
pub(crate) mod embed;
pub(crate) mod form_cache;
pub(crate) mod handlers;
pub(crate) mod page_lookup;
pub(crate) mod pages;
pub(crate) mod redirect;
pub(crate) mod result_cache;
pub(crate) mod results;
