//! Orders TLS certificates over ACME (RFC 8555) for verified domains, the base host and the wildcard of the sites domain.
//!
//! - `issuing`: claims due certificates, orders them concurrently and stores the results.
//! - `issuer`: what every order needs.
//! - `order`: the steps of one order, each of which another replica can continue.
//! - `authorities`: the configured certificate authorities and our accounts there; `http`: the client.
//! - `failure`: why an attempt failed, and what mends it.
//! - `chain`: reads what was issued.
//! - `dns_record`: publishes the record of DNS-01; `dns_hook`: with the operator's program.
//! - `files`: the wildcard's certificate from files.
//! - `renewal_info`: reads when the authorities want certificates renewed.
//! - `upkeep`: rows, metrics and emails around them.
//! - `settings`: section `[acme]`.

mod authorities;
mod chain;
mod dns_hook;
mod dns_record;
mod failure;
mod files;
mod http;
mod issuer;
mod issuing;
mod order;
mod renewal_info;
mod settings;
mod upkeep;

pub(crate) use issuer::Issuing;
pub(crate) use issuing::run;
pub(crate) use renewal_info::run as run_renewal_info;
pub(crate) use settings::Settings;
pub(crate) use upkeep::{INTERVAL, Upkeep};
