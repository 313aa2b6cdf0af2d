//! The job-runner as a program. `--help` teaches, `--print-config` prints the manual.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::run_main("job-runner", job_runner::DEFAULTS, |started| {
        job_runner::run(started.config, started.listeners, started.shutdown)
    })
}
