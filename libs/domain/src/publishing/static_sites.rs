//! Static sites: the files of a build at their own paths, and the rules that decide what an address answers.
//!
//! A deploy finds the [`root`] of the site in the zip, normalizes the paths of its files ([`site_path`]), leaves some of
//! them out ([`reasons`]), makes pages of its HTML ([`page_slugs`]), and parses `_redirects` and `_headers`
//! ([`redirects`], [`headers`], together [`site_rules`]). A request is resolved by [`resolution`], which asks for the
//! files at an [`address`].

pub mod address;
pub mod compression;
pub mod deploy_notes;
pub mod hashed_names;
pub mod headers;
pub mod limits;
pub mod page_slugs;
pub mod patterns;
pub mod reasons;
pub mod redirects;
pub mod resolution;
pub mod root;
pub mod site_path;
pub mod site_rules;

pub use site_rules::SiteRules;
