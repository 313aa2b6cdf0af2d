//! API keys: their lifecycle and their restrictions.

mod lifecycle;
mod restricted_keys;
