//! The public listener as a program. `--help` teaches, `--print-config` prints the manual.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::run_main("edge-server", edge_server::DEFAULTS, |started| {
        edge_server::run(started.config, started.listeners, started.shutdown)
    })
}
