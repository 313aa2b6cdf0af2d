//! Connections to Postgres: encrypted, cancelled and dead ones.

mod cancellation;
mod dead_connections;
mod tls;
