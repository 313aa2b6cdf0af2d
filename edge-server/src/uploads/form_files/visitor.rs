//! The visitor who uploads a file, identified by a digest of the network address.

use std::net::{IpAddr, Ipv4Addr};

use axum::extract::Request;
use web::ClientIp;

use crate::state::EdgeState;

/// A keyed digest of the visitor's network. Without the secret, addresses can't be tried against it.
pub(crate) struct Visitor(pub(super) [u8; 16]);

impl Visitor {
    pub(crate) fn of(state: &EdgeState, request: &Request) -> Self {
        let ip = state.trusted_proxies.client_ip(request.headers(), request.extensions());
        let network = ClientIp(ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))).network();
        let digest = state.form_renderer.key().digest("form_files.visitor", &[&network]);
        Self(std::array::from_fn(|at| digest[at]))
    }
}
