//! The headers that a site may set. All others could break the transport (`Content-Encoding`), reach other sites of the
//! same domain (`Set-Cookie`, `Strict-Transport-Security`, `Clear-Site-Data`), or promise what the platform does not
//! do (`Basic-Auth`).

/// Names besides those with a prefix in [`PREFIXES`], in lower case.
const NAMES: [&str; 13] = [
    "cache-control",
    "content-disposition",
    "content-language",
    "content-security-policy",
    "content-security-policy-report-only",
    "link",
    "origin-agent-cluster",
    "permissions-policy",
    "referrer-policy",
    "service-worker-allowed",
    "timing-allow-origin",
    "x-frame-options",
    "x-robots-tag",
];

/// Beginnings of names, in lower case.
const PREFIXES: [&str; 2] = ["access-control-", "cross-origin-"];

/// Headers with one value alone; several would be invalid or contradict each other.
const SINGLE: [&str; 8] = [
    "access-control-allow-credentials",
    "access-control-allow-origin",
    "access-control-max-age",
    "content-disposition",
    "origin-agent-cluster",
    "referrer-policy",
    "service-worker-allowed",
    "x-frame-options",
];

/// How several values of a header become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Merge {
    /// Joined by `, `.
    Join,
    /// Joined below one path; a later path replaces them.
    JoinBelowPath,
    /// The last one counts.
    Replace,
}

/// Returns whether a site may set a header, by its name in lower case.
pub(super) fn is_allowed(name: &str) -> bool {
    let has_prefix = |prefix: &&str| {
        let rest = name.strip_prefix(*prefix);
        rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'))
    };
    NAMES.contains(&name) || PREFIXES.iter().any(has_prefix)
}

/// Returns how several values of a header become one.
pub(super) fn merge_of(name: &str) -> Merge {
    if name == "cache-control" {
        Merge::JoinBelowPath
    } else if SINGLE.contains(&name) || name.starts_with("cross-origin-") {
        Merge::Replace
    } else {
        Merge::Join
    }
}
