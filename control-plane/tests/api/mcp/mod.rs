//! The MCP endpoint, in both eras of the protocol.

mod admission;
mod arguments;
mod bad_input;
mod calls;
mod client;
mod large_messages;
mod lists;
mod protocol;
mod schemas;
mod sizes;
