//! The edge over real stores: one service in this process, on free ports, with all its doors tried.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

mod addresses;
mod assets;
mod cable;
mod changes;
mod client;
mod connections;
mod counted;
mod domains;
mod encodings;
mod ends;
mod entries;
mod files;
mod form_files;
mod form_pages;
mod form_readers;
mod former_names;
mod forms;
mod harness;
mod hosts;
mod inner;
mod isolation;
mod limited;
mod once;
mod pages;
mod proxy;
mod results;
mod seeds;
mod short;
mod silence;
mod smuggling;
mod spam;
mod stale;
mod streams;
mod submissions;
mod suspended;
mod together;
mod two_readers;
mod uploads;
mod views;
mod webhooks;
