//! Static sites: the files of a build at their own paths, and the rules that decide what an address answers.

pub mod compression;
pub mod limits;
pub mod reasons;
pub mod site_path;
