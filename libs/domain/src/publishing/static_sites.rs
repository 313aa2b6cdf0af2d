//! Static sites: the files of a build at their own paths, and the rules that decide what an address answers.
//!
//! A deploy normalizes the paths of its files ([`site_path`]) and makes a [`site_plan`]: it finds the [`root`] of the site
//! in the zip, leaves some files out ([`reasons`]), and makes pages of the HTML ([`page_slugs`]). It parses `_redirects` and
//! `_headers` ([`redirects`], [`headers`], together [`site_rules`]). A request is resolved by [`resolution`], which asks for the
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
pub mod site_plan;
pub mod site_rules;

pub use site_rules::SiteRules;
