//! The whole system on one machine: private stores, the four services, and a folder that remembers it all.
//!
//! A local run is a deployment like others, made for one person: it makes its own secrets, lets webhooks
//! reach this machine, and refuses any base URL that isn't local.

mod admin;
mod arguments;
mod backends;
mod banner;
mod client;
mod commands;
mod demo;
mod folder;
mod locations;
mod logs;
mod progress;
mod services;
mod settings;
mod stack;
mod stack_file;
mod state;
mod supervise;
mod user_settings;

use std::process::ExitCode;

pub use stack_file::{Service, StackFile};

/// The program: reads the command line and does what it says.
pub fn main() -> ExitCode {
    match commands::run() {
        Ok(code) => code,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "a command line program's last words")]
            {
                eprintln!("error: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}
