//! Events that a webhook can receive.

/// All events, without `*`.
pub const EVENTS: [&str; 5] =
    ["submission.created", "submission.updated", "submission.deleted", "form.closed", "webhook.ping"];
/// Regular expression of an event or `*`.
pub const EVENT_PATTERN: &str =
    r"^(\*|submission\.created|submission\.updated|submission\.deleted|form\.closed|webhook\.ping)$";
/// Maximum number of events of one webhook: all of them, and `*`.
pub const EVENTS_MAX: usize = EVENTS.len() + 1;

/// The event of a message that an automation sends. It goes to the webhook that the automation names, so no webhook
/// subscribes to it.
pub const AUTOMATION_MESSAGE: &str = "automation.message";
/// The event of a form that has closed.
pub const FORM_CLOSED: &str = EVENTS[3];
/// The event of a test requested by the owner. It is tried once.
pub const PING: &str = EVENTS[4];
