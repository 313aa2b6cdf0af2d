//! The categories of endpoints.

/// The names of all categories, in the order in which a reader meets them.
pub(crate) const CATEGORIES: [&str; 14] = [
    "trial",
    "auth",
    "pages",
    "forms",
    "submissions",
    "webhooks",
    "workflows",
    "keys",
    "account",
    "analytics",
    "folders",
    "automations",
    "mcp",
    "system",
];

/// Returns the category of a path. Whatever has no noun of its own is part of the system.
pub(super) fn category_of(path: &str) -> &'static str {
    let mut segments = path.trim_start_matches('/').split('/').skip(1);
    let noun = segments.next().unwrap_or_default();
    match (noun, segments.nth(1)) {
        ("launch" | "deploy", _) => "pages",
        ("pipeline", _) => "forms",
        // Everything below one form is about its answers.
        ("forms", Some(_)) => "submissions",
        ("collect", _) => "analytics",
        ("deliveries", _) => "webhooks",
        ("session" | "sessions", _) => "auth",
        ("activity", _) => "account",
        _ => CATEGORIES.into_iter().find(|category| *category == noun).unwrap_or("system"),
    }
}
