//! Open connections: the state of each, and the table of all.

mod connection;
mod connection_table;
mod idle_list;

pub(crate) use connection::{ActiveResponse, Connection, Disposition};
pub(crate) use connection_table::{ConnectionGuard, ConnectionTable, Room};
