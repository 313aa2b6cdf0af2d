//! Outgoing HTTP calls to URLs that users provide, such as webhooks. A user must not reach internal hosts through them,
//! nor make the service wait, read or buffer without bound. This is the only crate that depends on reqwest.

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
