//! `cargo run`: the whole system on one machine. `--help` teaches.

use std::process::ExitCode;

fn main() -> ExitCode {
    local::main()
}
