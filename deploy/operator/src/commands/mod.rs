//! The commands, one module each: their arguments and what they print.

pub(crate) mod admin;
pub(crate) mod backup;
pub(crate) mod check;
mod context;
pub(crate) mod deliveries;
mod dispatch;
pub(crate) mod images;
mod key_output;
pub(crate) mod keys;
pub(crate) mod migrate;
pub(crate) mod outbox;
pub(crate) mod restore;
pub(crate) mod secrets;
pub(crate) mod segments;

pub(crate) use dispatch::run;
