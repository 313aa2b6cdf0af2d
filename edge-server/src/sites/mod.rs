//! Sites: which host shows which site, its pages and files, and how they are sent.

pub(crate) mod classify_host;
pub(crate) mod connection_cache;
pub(crate) mod files;
pub(crate) mod header_templates;
pub(crate) mod page_lookup;
pub(crate) mod page_response;
pub(crate) mod page_views;
pub(crate) mod pages;
pub(crate) mod short_urls;
pub(crate) mod site_cache;
pub(crate) mod site_handler;
pub(crate) mod sitemaps;
