//! Calls to addresses that users give: webhooks and the like. Whoever gives an address must not reach what only we
//! can reach, nor make us wait, read or remember without end. This is the only crate that knows reqwest.

pub mod address;
mod allow;
mod body;
mod client;
mod error;
mod resolve;
mod target;

pub use allow::{Allow, InvalidAllow};
pub use client::{Client, Config, Request, Response};
pub use error::{Error, Refusal};
pub use resolve::{Resolve, Resolving, SystemResolver};
pub use target::check_target;
