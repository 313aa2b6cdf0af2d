//! Responses by kind of host and class of status.

use http::StatusCode;

use super::RESPONSES;

/// The kind of a requested host, at the position of its row in [`RESPONSES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostLabel {
    Base,
    /// A name of the sites domain, or the asset host.
    Subdomain,
    /// Any other host with a dot, whether or not it has a site.
    Custom,
    Unknown,
}

/// Counts a response: one atomic addition.
pub(crate) fn count_response(host: HostLabel, status: StatusCode) {
    let class = usize::from(status.as_u16() / 100).clamp(1, 5) - 1;
    RESPONSES.counters()[host as usize][class].add(1);
}
