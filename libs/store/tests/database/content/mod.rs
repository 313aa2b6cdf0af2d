//! Pages and files.

mod blobs;
mod page_paths;
mod subdomain_names;
mod versions;
