//! Pages, files and deployed sites, and the hosts and URLs that serve them.

pub mod addresses;
pub mod certificates;
pub mod deploys;
pub mod domains;
pub mod entries;
pub mod media;
pub mod pages;
pub mod previews;
pub mod rendering;
pub mod static_sites;
pub mod subdomains;
pub mod uploads;
