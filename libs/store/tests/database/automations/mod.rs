//! Automations and their runs.

mod claims;
mod deletion;
mod locks;
mod versions;
