//! Custom domains: hosts of an account that show one of its subdomains.

mod certificates;
mod check_leases;
mod check_results;
mod redirects;
mod rows;
mod served;

pub use certificates::{delete_certificate, delete_orphaned_certificates, hurry_refused_order};
pub use check_leases::{LeasedCheck, lease_check, lease_due_checks};
pub use check_results::{CheckContext, store_check};
pub use redirects::{RecordsGone, find_records_gone, list_redirects};
pub use rows::{
    Domain, DomainChange, NewDomain, delete_domain, find_domain, insert_domain, list_domains, update_domain,
};
pub use served::{find_site_by_domain, is_verified};
