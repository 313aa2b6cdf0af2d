//! Webhooks: settings and deliveries.

mod deliveries;
mod delivery_log;
mod detected_templates;
mod own_addresses;
mod restricted_keys;
pub(crate) mod settings;
