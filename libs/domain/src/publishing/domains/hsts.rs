//! The policy of a domain that browsers reach it over https alone (RFC 6797).

/// Returns the value of `Strict-Transport-Security`. It has no `preload`: a browser's list can't be left for months.
#[must_use]
pub fn strict_transport_security(max_age_seconds: i64, includes_subdomains: bool) -> String {
    let subdomains = if includes_subdomains { "; includeSubDomains" } else { "" };
    format!("max-age={max_age_seconds}{subdomains}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_has_an_age_and_may_include_subdomains() {
        assert_eq!(strict_transport_security(31_536_000, true), "max-age=31536000; includeSubDomains");
        assert_eq!(strict_transport_security(300, false), "max-age=300");
        assert_eq!(strict_transport_security(0, false), "max-age=0", "browsers forget the policy");
    }
}
