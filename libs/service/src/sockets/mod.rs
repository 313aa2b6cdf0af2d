//! Listening sockets: bound or passed to this process, accepted from, and drained on shutdown.

mod accepting;
mod drain;
mod listeners;
mod passed_sockets;

pub use accepting::Accepting;
pub use drain::Drain;
pub use listeners::Listeners;
