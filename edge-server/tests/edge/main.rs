//! The edge over real stores: one service in this process, on free ports, with all its doors tried.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

mod assets;
mod cable;
mod changes;
mod client;
mod ends;
mod files;
mod former_names;
mod forms;
mod harness;
mod hosts;
mod inner;
mod pages;
mod proxy;
mod seeds;
mod short;
mod smuggling;
mod stale;
mod submissions;
mod suspended;
mod uploads;
mod webhooks;
