//! Webhooks: events, settings, signed requests, and the classification of responses.
//!
//! The format is Standard Webhooks 1.0, so receivers verify signatures with existing libraries.

mod classify;
mod events;
pub(crate) mod field_mapping;
pub mod health;
mod request;
mod response;
mod settings;
mod signature;
mod template;

pub use classify::classify_response;
pub use events::{AUTOMATION_MESSAGE, EVENT_PATTERN, EVENTS, EVENTS_MAX, FORM_CLOSED, PING};
pub use field_mapping::{FieldLabel, FieldNames, MAPPED_CHARS_MAX, MAPPED_MAX};
pub use request::{
    Delivery, Request, RequestDigest, RequestError, SECRET_PURPOSE, URL_PURPOSE, signed_request,
};
pub use response::{ReceiverResponse, Verdict};
pub use settings::{DESCRIPTION_CHARS_MAX, URL_BYTES_MAX, WebhookSettings, check, check_chat};
pub use signature::{PREVIOUS_SECONDS_MAX, SECRET_PREFIX, make_secret, sign};
pub use template::Template;
