//! API keys: their lifecycle, their restrictions and rotations of the pepper.

mod lifecycle;
mod peppers;
mod restricted_keys;
