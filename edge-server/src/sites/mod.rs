//! Sites: classifies hosts, looks up and sends pages and files, and counts page views.

pub(crate) mod answers;
mod cache_status;
pub(crate) mod cached_response;
pub(crate) mod classify_host;
pub(crate) mod connection_cache;
pub(crate) mod error_responses;
pub(crate) mod files;
pub(crate) mod header_templates;
pub(crate) mod page_lookup;
pub(crate) mod page_response;
pub(crate) mod page_views;
pub(crate) mod pages;
pub(crate) mod short_url_cache;
pub(crate) mod short_urls;
pub(crate) mod site_cache;
pub(crate) mod site_handler;
pub(crate) mod sitemaps;
