//! `cargo run`: the whole system on one machine. `--help` describes the commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    local::main()
}
