//! Listening sockets: bound or passed to this process, accepted from, and drained on shutdown.

mod accepting;
mod drain;
mod listeners;
mod listening_socket;
mod passed_sockets;

pub use accepting::Accepting;
pub use drain::{Drain, Draining, EarlyRequest};
pub use listeners::Listeners;
pub use listening_socket::ListeningSocket;
pub use passed_sockets::adopt_passed_sockets;
