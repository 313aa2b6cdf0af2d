//! The management API as a program. `--help` teaches, `--print-config` prints the manual.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::run_main("control-plane", control_plane::DEFAULTS, |started| {
        control_plane::run(started.config, started.listeners, started.shutdown)
    })
}
