//! The tools that are listed without `?toolsets=`: those that an agent reaches for first.

/// Category of the endpoint itself, which is no tool.
pub(super) const ITSELF: &str = "mcp";

/// Operations, in the order of the list.
pub(super) const OPERATIONS: [&str; 16] = [
    "status.read",
    "account.read",
    "launch.create",
    "pages.create",
    "pages.list",
    "pages.read",
    "pages.update",
    "pipeline.create",
    "forms.create",
    "forms.list",
    "submissions.list",
    "webhooks.create",
    "webhooks.test",
    "analytics.create",
    "analytics.query",
    "automations.create",
];

/// What the summaries of some tools leave out.
pub(super) const NOTES: [(&str, &str); 5] = [
    ("launch.create", "A call here takes at most 4 MiB; send larger sites by HTTP."),
    ("pages.batch", "A call here takes at most 4 MiB; send larger batches by HTTP."),
    ("pages.create", "html is a whole page."),
    ("webhooks.create", "No formIds: all forms."),
    ("automations.create", "See describe_api for triggers and steps."),
];
