//! The real program over real stores.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod accounts;
mod backed_up;
mod backups;
mod check;
mod help;
mod images;
mod installation;
mod keys;
mod migrate;
mod secrets;
mod stuck_work;
