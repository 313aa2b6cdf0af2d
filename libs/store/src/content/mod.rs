//! Pages with their versions, entries and views, and the folders that group them.

pub mod archives;
pub mod entries;
pub mod folders;
pub mod pages;
pub mod resources;
pub mod sitemaps;
pub mod versions;
pub mod views;
