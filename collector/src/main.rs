//! The collector as a program. `--help` lists the options, `--print-config` prints the commented settings.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::run_main("collector", collector::DEFAULTS, |started| {
        collector::run(started.config, started.listeners, started.shutdown)
    })
}
