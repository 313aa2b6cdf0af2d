//! The whole system on one machine: private stores, the four services, and a directory with all their data.
//!
//! A local run is a deployment for one developer: it generates its secrets, lets webhooks call this machine, and rejects a
//! base URL that isn't local.

mod admin;
mod arguments;
mod banner;
mod client;
mod commands;
mod demo;
mod folder;
mod logs;
mod progress;
mod stack;
mod stack_file;
mod status;

use std::process::ExitCode;

pub use stack_file::{Service, StackFile, Store};

/// Runs the program: parses the command line and executes the command.
pub fn main() -> ExitCode {
    match commands::run() {
        Ok(code) => code,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the error of a command line program")]
            {
                eprintln!("error: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}
