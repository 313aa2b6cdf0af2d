//! Webhooks: settings and deliveries.

mod deliveries;
pub(crate) mod delivery_log;
mod detected_templates;
mod own_addresses;
mod restricted_keys;
pub(crate) mod settings;
