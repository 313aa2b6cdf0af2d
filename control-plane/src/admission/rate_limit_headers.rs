//! Headers of rate limits: `RateLimit-Policy` lists the rules, and `RateLimit` the remaining quota
//! (draft-ietf-httpapi-ratelimit-headers-10).

use std::time::Duration;

use cache::{Decision, Rule};
use http::{HeaderMap, HeaderName, HeaderValue};

/// A named rule.
pub(crate) struct Policy {
    pub(crate) name: &'static str,
    pub(crate) rule: Rule,
}

/// Returns the headers of a response.
pub(crate) fn headers(policies: &[Policy], decision: &Decision) -> HeaderMap {
    let rules = policies
        .iter()
        .map(|Policy { name, rule }| format!(r#""{name}";q={};w={}"#, rule.limit, rule.window.as_secs()));
    // Reports only the decisive rule, the one closest to its limit.
    let decisive = Rule { limit: decision.limit, window: decision.window };
    let remaining = policies.iter().filter(|policy| policy.rule == decisive).map(|policy| {
        format!(r#""{}";r={};t={}"#, policy.name, decision.remaining, seconds(decision.reset_after))
    });
    let lists = [
        ("ratelimit-policy", rules.collect::<Vec<_>>().join(", ")),
        ("ratelimit", remaining.collect::<Vec<_>>().join(", ")),
    ];
    let header = |(name, list)| Some((HeaderName::from_static(name), HeaderValue::try_from(list).ok()?));
    lists.into_iter().filter_map(header).collect()
}

/// Returns the headers of a token bucket of one second: its size, the remaining tokens, and when there is one again.
pub(crate) fn bucket_headers(size: u32, remaining: u32, reset_after: Duration) -> HeaderMap {
    let window = Duration::from_secs(1);
    let policy = Policy { name: "second", rule: Rule { limit: size, window } };
    let decision =
        Decision { allowed: true, limit: size, window, remaining, retry_after: reset_after, reset_after };
    headers(&[policy], &decision)
}

/// Whole seconds, rounded up.
pub(crate) fn seconds(left: Duration) -> u64 {
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_report_the_rules_and_the_remaining_quota() {
        let rule = |limit, window| Rule { limit, window: Duration::from_secs(window) };
        let policies =
            [Policy { name: "hour", rule: rule(5, 3_600) }, Policy { name: "day", rule: rule(20, 86_400) }];
        let decision = Decision {
            allowed: true,
            limit: 20,
            window: Duration::from_secs(86_400),
            remaining: 3,
            retry_after: Duration::ZERO,
            reset_after: Duration::from_millis(59_001),
        };
        let headers = headers(&policies, &decision);
        assert_eq!(headers["ratelimit-policy"], r#""hour";q=5;w=3600, "day";q=20;w=86400"#);
        assert_eq!(headers["ratelimit"], r#""day";r=3;t=60"#);
    }
}
