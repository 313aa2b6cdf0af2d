//! API keys: their lifecycle, their restrictions and rotations of the pepper.

mod last_key;
mod lifecycle;
mod peppers;
mod restricted_keys;
