//! What a caller must know of an operation beyond its schemas: the problems it answers, and its limits.

use domain::plans::{Limits, Plan};
use http::Method;
use web::Code;

use crate::catalog::{Location, Operation};

/// Returns the problems of an operation, those of every operation left out.
pub(super) fn errors_of(operation: &Operation) -> Vec<Code> {
    let mut codes = Vec::new();
    let has =
        |location: Location| operation.parameters.iter().any(|parameter| parameter.location == location);
    if operation.request_body.is_some() {
        codes.extend([
            Code::ValidationFailed,
            Code::MalformedJson,
            Code::UnsupportedMediaType,
            Code::PayloadTooLarge,
        ]);
    } else if has(Location::Query) || has(Location::Path) {
        codes.push(Code::ValidationFailed);
    }
    if operation.scopes.is_some() {
        codes.extend([Code::Unauthenticated, Code::KeyExpired, Code::Suspended]);
    }
    if operation.scopes.as_ref().is_some_and(|scopes| !scopes.is_empty()) {
        codes.push(Code::InsufficientScope);
    }
    if has(Location::Path) {
        codes.push(Code::NotFound);
    }
    if has(Location::Header) && operation.method == Method::POST {
        codes.extend([Code::IdempotencyMismatch, Code::Conflict]);
    }
    for code in particular_errors(operation) {
        if !codes.contains(code) {
            codes.push(*code);
        }
    }
    codes.sort_by_key(|code| code.status());
    codes
}

/// The problems of every operation.
pub(super) const COMMON_ERRORS: [Code; 3] = [Code::RateLimited, Code::Internal, Code::Unavailable];

fn particular_errors(operation: &Operation) -> &'static [Code] {
    match (operation.method.as_str(), operation.path.as_str()) {
        ("POST", "/api/pages") => &[Code::SlugTaken, Code::QuotaExceeded, Code::NotFound],
        ("PUT", "/api/pages/{id}" | "/api/forms/{id}") => &[Code::StaleWrite],
        ("POST", "/api/launch") => &[Code::QuotaExceeded, Code::NotFound, Code::Conflict],
        ("POST", "/api/pipeline") => &[Code::QuotaExceeded, Code::NotFound, Code::Forbidden],
        ("POST", "/api/pages/{id}/entries") => &[Code::QuotaExceeded],
        ("POST", "/api/forms" | "/api/workflows/{id}" | "/api/analytics/sites" | "/api/automations") => {
            &[Code::QuotaExceeded, Code::NotFound]
        }
        ("POST", "/api/webhooks") => &[Code::QuotaExceeded, Code::NotFound, Code::Forbidden],
        ("POST", "/api/pages/assets" | "/api/deploy" | "/api/account/subdomains" | "/api/pages/batch") => {
            &[Code::QuotaExceeded]
        }
        ("POST", "/api/account/domains") => &[Code::PlanRestricted, Code::QuotaExceeded, Code::Conflict],
        ("PUT", "/api/account/subdomain") => &[Code::Conflict],
        ("GET", "/api/forms/{id}/export") => &[Code::PlanRestricted],
        ("PATCH", "/api/forms/{id}/submissions/{subId}") => &[Code::PlanRestricted, Code::StaleWrite],
        ("PUT", "/api/forms/{id}/submissions/upsert") => &[Code::PlanRestricted, Code::FormFull],
        ("POST", "/api/forms/{id}/submit") => {
            &[Code::DuplicateSubmission, Code::FormClosed, Code::FormFull, Code::LoopDetected]
        }
        ("POST", "/api/forms/{id}/upload") => &[Code::FormClosed, Code::FormFull, Code::QuotaExceeded],
        _ => &[],
    }
}

/// Returns the limits of an operation, as sentences.
pub(super) fn limits_of(operation: &Operation) -> Vec<String> {
    let mut limits = Vec::new();
    let on_plans = |what: &str, limit: fn(&Limits) -> i64| {
        let of = |plan: Plan| format!("{} on {}", shown(limit(&plan.limits())), plan.as_str());
        format!("{what}: {}.", Plan::ALL.map(of).join(", "))
    };
    let projects =
        || on_plans("Forms, pages, analytics sites and automations together", |limits| limits.projects);
    match (operation.method.as_str(), operation.path.as_str()) {
        ("POST", "/api/trial") => limits.push("A few trials an hour and a day from one address.".to_owned()),
        ("POST", "/api/pages" | "/api/forms" | "/api/workflows/{id}" | "/api/analytics/sites") => {
            limits.push(projects());
        }
        ("POST", "/api/launch" | "/api/pages/batch") => {
            limits.extend([projects(), "200 pages in one call; only new ones count.".to_owned()]);
        }
        ("DELETE", "/api/pages/batch") => limits.push("200 pages in one call.".to_owned()),
        ("POST", "/api/automations") => {
            limits.push(projects());
            limits.push(on_plans("Steps", |limits| limits.automation_max_steps));
            limits.push(on_plans("Runs a month", |limits| limits.automation_runs_per_month));
        }
        ("POST", "/api/webhooks") => limits.push(on_plans("Webhooks", |limits| limits.webhooks)),
        ("POST", "/api/pipeline") => {
            limits.extend([projects(), on_plans("Webhooks, one for each chat", |limits| limits.webhooks)]);
        }
        ("POST", "/api/account/subdomains") => {
            limits.push(on_plans("Subdomains", |limits| limits.subdomains));
        }
        ("PUT", "/api/account/subdomain") => limits.push("Three renames a day.".to_owned()),
        ("POST", "/api/account/domains") => {
            limits.push(on_plans("Custom domains", |limits| limits.custom_domains));
        }
        ("POST", "/api/account/domains/{id}/check") => limits.push("Once in 10 seconds.".to_owned()),
        ("POST", "/api/pages/assets") => {
            limits.push(on_plans("Bytes of one asset", |limits| limits.asset_size_limit));
            limits.push(on_plans("Bytes stored", |limits| limits.storage_bytes));
        }
        ("POST", "/api/deploy") => limits.push(on_plans("Bytes stored", |limits| limits.storage_bytes)),
        ("POST", "/api/pages/{id}/entries") => limits.push("500 entries on a page.".to_owned()),
        ("POST", "/api/forms/{id}/submit") => {
            limits.push(on_plans("Submissions of a form", |limits| limits.submissions_per_form));
        }
        ("PUT", "/api/forms/{id}/submissions/upsert") => limits.push("Not on free.".to_owned()),
        ("PATCH", "/api/forms/{id}/submissions/{subId}") => limits.push("Not on free.".to_owned()),
        ("GET", "/api/forms/{id}/export") => limits.push("Not on free.".to_owned()),
        ("GET", "/api/analytics/sessions") => limits.push("Windows of at most 7 days.".to_owned()),
        ("POST", "/api/analytics/funnel" | "/api/analytics/funnel/drop-off") => {
            limits.push("2 to 5 steps.".to_owned());
        }
        ("POST", "/api/collect") => {
            limits.push("30 events a minute from one address; more are dropped.".to_owned());
            limits.push(on_plans("Events a month", |limits| limits.events_per_month));
        }
        ("POST", "/api/keys") => limits.push("`expiresAt` is at most 90 days ahead.".to_owned()),
        _ => {}
    }
    limits.extend(body_limit(operation));
    limits
}

fn body_limit(operation: &Operation) -> Option<String> {
    operation.request_body.as_ref()?;
    let megabytes = match operation.path.as_str() {
        "/api/launch" | "/api/pages/batch" => 160,
        "/api/pages" | "/api/pages/{id}" | "/api/mcp" => 4,
        "/api/deploy" => 8,
        _ if operation.served_here => 1,
        // The edge and the collector have limits of their own.
        _ => return None,
    };
    Some(format!("A body of at most {megabytes} MB."))
}

fn shown(limit: i64) -> String {
    if limit < 0 { "unlimited".to_owned() } else { limit.to_string() }
}
