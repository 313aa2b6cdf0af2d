//! Which headers a step may set.

/// Headers that a `fetch` step can't set: the connection's, and those that we set.
const FETCH_FORBIDDEN: [&str; 11] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers beside `X-…` that a `respond` step may set; `Location` only with a status 3xx.
const RESPOND_ALLOWED: [&str; 3] = ["content-type", "cache-control", "retry-after"];

/// Beginnings of `X-…` headers that belong to the service, or that tell a proxy in front of it to serve files.
const RESPOND_OURS: [&str; 20] = [
    "x-accel-",
    "x-cache",
    "x-client-ip",
    "x-content-type",
    "x-dns-",
    "x-edge-",
    "x-envoy-",
    "x-forwarded",
    "x-frame-",
    "x-lighttpd-",
    "x-litespeed-",
    "x-permitted-",
    "x-ratelimit",
    "x-real-ip",
    "x-reproxy-",
    "x-request-id",
    "x-secret",
    "x-sendfile",
    "x-wr-",
    "x-xss-",
];

fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.len() <= 128 && name.bytes().all(allowed)
}

/// Returns whether a `fetch` step may set a header.
pub fn is_fetch_header(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    is_name(name) && !FETCH_FORBIDDEN.contains(&lower.as_str()) && !lower.starts_with("x-automation-")
}

/// Returns whether a `respond` step may set a header with this status.
pub fn is_respond_header(name: &str, status: u16) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_ours =
        RESPOND_OURS.iter().any(|ours| lower.starts_with(ours)) || lower.starts_with("x-automation-");
    is_name(name)
        && (RESPOND_ALLOWED.contains(&lower.as_str())
            || (lower == "location" && (300..400).contains(&status))
            || (lower.starts_with("x-") && !is_ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_can_not_command_the_proxy_before_it() {
        for name in [
            "X-Accel-Redirect",
            "X-Accel-Buffering",
            "X-Sendfile",
            "X-Sendfile-Type",
            "X-LIGHTTPD-send-file",
            "X-LiteSpeed-Location",
            "X-Reproxy-URL",
            "X-Edge-Token",
            "X-Client-IP",
            "X-WR-Depth",
        ] {
            assert!(!is_respond_header(name, 200), "{name}");
        }
        assert!(is_respond_header("X-Own", 200));
    }
}
