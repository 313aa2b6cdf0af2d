//! Webhooks: settings and deliveries.

mod deliveries;
mod own_addresses;
mod restricted_keys;
pub(crate) mod settings;
