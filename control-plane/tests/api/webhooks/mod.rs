//! Webhooks: settings and deliveries.

mod deliveries;
mod detected_templates;
mod own_addresses;
mod restricted_keys;
pub(crate) mod settings;
