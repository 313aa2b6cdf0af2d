//! Subdomains, custom domains, and the files that are served under them.

pub mod acme;
pub mod assets;
pub mod certificates;
pub mod deploys;
pub mod domains;
pub mod renewal_info;
pub mod served_files;
pub mod site_addresses;
pub mod subdomain_names;
pub mod subdomains;
pub mod tls_certificates;
pub mod uploads;
