//! The running system: stores, services, their settings and their supervision.

mod backends;
mod https;
mod locations;
mod ports;
mod private_store;
pub(crate) mod services;
mod settings;
mod supervise;
mod up;
mod user_settings;

pub(crate) use https::AUTHORITY;
pub(crate) use locations::{ATTRIBUTION, LINKS};
pub(crate) use settings::Secrets;
pub(crate) use up::up;
