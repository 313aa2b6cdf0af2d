//! Static sites: the files of a build at their own paths, and the rules that decide what an address answers.

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
pub mod root;
pub mod site_path;
