//! The local runner, built under a name of its own for the stories to start.

use std::process::ExitCode;

fn main() -> ExitCode {
    local::main()
}
