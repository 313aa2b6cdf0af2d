//! The `control-plane` program. `--help` lists its options, `--print-config` prints the commented defaults.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::run_main("control-plane", control_plane::DEFAULTS, |started| {
        control_plane::run(started.config, started.listeners, started.shutdown)
    })
}
