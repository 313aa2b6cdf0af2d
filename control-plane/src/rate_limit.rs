//! Rate limits that all replicas share, with their response headers; a rejection carries `Retry-After`.

use cache::Rule;
use http::HeaderMap;
use web::{Code, Problem};

use crate::App;
use crate::admission::rate_limit_headers::{Policy, headers, seconds};

/// The headers of the response, and the problem of a rejected call.
pub(crate) struct RateLimitResult {
    pub(crate) headers: HeaderMap,
    pub(crate) result: Result<(), Problem>,
}

/// Counts one call of `caller` across all replicas. `detail` explains a rejection.
pub(crate) async fn check(app: &App, caller: &str, policies: &[Policy], detail: &str) -> RateLimitResult {
    let rules: Vec<Rule> = policies.iter().map(|policy| policy.rule).collect();
    let decision = app.limiter.hit(caller, &rules, app.clock.now()).await;
    let rejected = || Problem::new(Code::RateLimited, detail).retry_after(seconds(decision.retry_after));
    RateLimitResult {
        headers: headers(policies, &decision),
        result: if decision.allowed { Ok(()) } else { Err(rejected()) },
    }
}
