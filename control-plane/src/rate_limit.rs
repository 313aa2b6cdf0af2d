//! Rate limits as callers are told of them: `RateLimit-Policy` says the rules, `RateLimit` where the caller stands
//! (draft-ietf-httpapi-ratelimit-headers-10), and a refusal when to come back.

use std::time::Duration;

use cache::{Decision, Rule};
use http::{HeaderMap, HeaderName, HeaderValue};
use web::{Code, Problem};

use crate::App;

/// A rule and what it is called.
pub(crate) struct Policy {
    pub(crate) name: &'static str,
    pub(crate) rule: Rule,
}

/// Whether a call may go on, and what its answer says of that.
pub(crate) struct RateLimitResult {
    pub(crate) headers: HeaderMap,
    pub(crate) result: Result<(), Problem>,
}

/// Counts one call of `who` together with all replicas; `detail` is what it is told if it may not.
pub(crate) async fn check(app: &App, caller: &str, policies: &[Policy], detail: &str) -> RateLimitResult {
    let rules: Vec<Rule> = policies.iter().map(|policy| policy.rule).collect();
    let decision = app.limiter.hit(caller, &rules, app.clock.now()).await;
    let refused = || Problem::new(Code::RateLimited, detail).retry_after(seconds(decision.retry_after));
    RateLimitResult {
        headers: headers(policies, &decision),
        result: if decision.allowed { Ok(()) } else { Err(refused()) },
    }
}

fn headers(policies: &[Policy], decision: &Decision) -> HeaderMap {
    let rules = policies
        .iter()
        .map(|Policy { name, rule }| format!(r#""{name}";q={};w={}"#, rule.limit, rule.window.as_secs()));
    // Only the rule that decided is told: the one nearest to its limit.
    let decisive = Rule { limit: decision.limit, window: decision.window };
    let decided = policies.iter().filter(|policy| policy.rule == decisive).map(|policy| {
        format!(r#""{}";r={};t={}"#, policy.name, decision.remaining, seconds(decision.reset_after))
    });
    let lists = [
        ("ratelimit-policy", rules.collect::<Vec<_>>().join(", ")),
        ("ratelimit", decided.collect::<Vec<_>>().join(", ")),
    ];
    let header = |(name, list)| Some((HeaderName::from_static(name), HeaderValue::try_from(list).ok()?));
    lists.into_iter().filter_map(header).collect()
}

/// Whole seconds, never too few.
fn seconds(left: Duration) -> u64 {
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_are_told_and_where_the_caller_stands() {
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
