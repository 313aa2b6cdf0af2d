//! Webhooks: the receivers of a form's events.

mod deactivation;
mod health;
mod insert;
mod links;
mod mapping_conflicts;
mod read;
mod update;

pub use deactivation::{Deactivation, find_deactivation};
pub use health::{clear_failing, deactivate, mark_failing, update_chat_id};
pub use insert::{NewWebhook, insert_webhook};
pub use links::{link_webhooks, list_links, unlink_webhooks, update_forms};
pub use mapping_conflicts::{MappingConflict, MappingScope, find_mapping_conflict};
pub use read::{Webhook, find_webhook, list_webhooks};
pub use update::{
    WebhookChange, delete_expired_secrets, delete_webhook, lock_webhook, update_secret, update_webhook,
};
