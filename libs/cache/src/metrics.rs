//! The instruments of this crate: those of its connections to Redis, which all crates share.

pub use redis_connection::metrics::ALL;
