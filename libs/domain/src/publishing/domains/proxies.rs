//! Proxies of other services in front of a domain.

/// Headers that proxies add to every response.
const HEADERS: [&str; 7] = [
    "cf-ray",
    "x-amz-cf-id",
    "x-fastly-request-id",
    "x-akamai-request-id",
    "x-sucuri-id",
    "x-azure-ref",
    "x-iinfo",
];

/// Returns whether a response was sent by a proxy, given which headers it has.
pub fn has_proxy_headers(has: impl Fn(&str) -> bool) -> bool {
    HEADERS.iter().any(|name| has(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_known_by_its_headers() {
        assert!(has_proxy_headers(|name| name == "cf-ray"));
        assert!(!has_proxy_headers(|name| ["server", "via", "date"].contains(&name)));
    }
}
