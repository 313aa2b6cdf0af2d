//! The real program over real stores.

#![expect(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "for tests alone")]

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
