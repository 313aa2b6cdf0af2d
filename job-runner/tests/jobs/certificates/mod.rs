//! Certificates are ordered from a real ACME server, Let's Encrypt's pebble, or from a stub for what pebble lacks.

mod authority;
mod crashes;
mod faults;
mod issuing;
mod limits;
mod renewal_info;
mod renewals;
mod responders;
mod stub_authority;
mod unaccepted_orders;
mod wildcard;
