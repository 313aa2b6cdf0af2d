//! Custom domains: which hosts an account may add, which DNS records they need, and when a domain is served.

mod addresses;
mod caa;
mod certificates;
mod checks;
mod errors;
mod found;
mod holders;
mod host_name;
mod hsts;
mod proxies;
mod records;
mod redirects;

pub use addresses::{Divided, Routing, Target};
pub use caa::{CaaRecord, allows_issue, tree};
pub use certificates::{Certificate, ssl_status};
pub use checks::{Standing, Status, next_check, standing};
pub use errors::{ErrorCode, explain};
pub use found::{Failure, Found};
pub use holders::{Claim, SERVED_FOR, holder, is_served};
pub use host_name::{challenge, challenge_name, is_apex, read};
pub use hsts::strict_transport_security;
pub use proxies::has_proxy_headers;
pub use records::{Comparison, Record, RecordStatus, compare};
pub use redirects::leads_back;
