//! The collector as a program. `--help` teaches, `--print-config` prints the manual.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::run_main("collector", collector::DEFAULTS, |started| {
        collector::run(started.config, started.listeners, started.shutdown)
    })
}
