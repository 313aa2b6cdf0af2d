//! Certificates are ordered from a real ACME server, Let's Encrypt's pebble.

mod authority;
mod crashes;
mod faults;
mod issuing;
mod limits;
mod renewals;
mod responders;
mod wildcard;
