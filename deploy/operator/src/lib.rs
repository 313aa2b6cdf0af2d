//! The operator's program, `webruntime`: it takes the services' settings and works on their stores.
//!
//! What the commands do is in `libs/operations`; this crate parses arguments, loads settings and prints.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line program prints its results")]

mod actor;
mod arguments;
mod commands;
mod settings;

use std::process::ExitCode;

/// Runs the program: parses the command line and executes the command.
pub fn main() -> ExitCode {
    match commands::run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("webruntime: {error:#}");
            ExitCode::FAILURE
        }
    }
}
