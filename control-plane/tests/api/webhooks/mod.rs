//! Webhooks: settings and deliveries.

mod deliveries;
mod settings;
