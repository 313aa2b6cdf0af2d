//! The operator's program. `--help` describes the commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    operator::main()
}
