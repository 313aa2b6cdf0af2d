//! TLS: certificates by server name, session tickets, and the challenges of certificate authorities.
//!
//! The job-runner issues certificates; the edge only reads them. A handshake never waits for an order.

mod alpn_challenge;
mod certificate_cache;
mod challenges;
mod handshake;
mod handshake_slots;
mod https_redirect;
mod known_names;
mod name_list;
mod served_certificate;
mod server_config;
mod server_name;
mod termination;
mod ticket_keys;
mod ticketer;

pub(crate) use challenges::{Challenges, is_http_challenge};
pub(crate) use handshake::{Accepted, accept};
pub(crate) use https_redirect::HttpsAddress;
pub(crate) use name_list::{INTERVAL as NAMES_INTERVAL, load_names};
pub(crate) use served_certificate::ServedCertificate;
pub(crate) use termination::TlsTermination;
pub(crate) use ticket_keys::{INTERVAL as TICKET_KEY_INTERVAL, rotate_ticket_keys};
