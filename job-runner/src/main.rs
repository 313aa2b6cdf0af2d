//! The job-runner program. `--help` lists its options, `--print-config` prints the commented defaults.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::run_main("job-runner", job_runner::DEFAULTS, |started| {
        job_runner::run(started.config, started.listeners, started.shutdown)
    })
}
