//! The commands `status`, `down` and `reset`, and a start in the background.
#![expect(clippy::print_stdout, reason = "these commands print their result")]

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::arguments::Up;
use crate::banner;
use crate::client::Client;
use crate::folder::Folder;
use crate::logs;
use crate::stack_file::StackFile;

/// The first start fetches programs.
const START_TIMEOUT: Duration = Duration::from_secs(600);
const LOG: &str = "up.log";

/// Starts `up` in the background, shows its progress and prints the banner once the system is ready.
pub(crate) async fn detach(folder: &Folder, up: &Up) -> Result<()> {
    if folder.lock()?.is_none() {
        bail!("{}", folder.already_in_use());
    }
    let log_path = folder.logs()?.join(LOG);
    logs::rotate(&log_path)?;
    let log = std::fs::File::options().create(true).append(true).open(&log_path)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["up", "--detached", "--port", &up.port.to_string(), "--dir"]).arg(folder.path());
    if up.processes {
        command.arg("--processes");
    }
    if up.https {
        command.args(["--https", "--https-port", &up.https_port.to_string()]);
    }
    command.args(up.set.iter().flat_map(|entry| ["--set", entry]));
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
    let mut child = command.spawn().context("starting in the background")?;

    let (client, began, mut shown) = (Client::new()?, Instant::now(), 0);
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    loop {
        ticks.tick().await;
        let output = std::fs::read_to_string(&log_path).unwrap_or_default();
        print!("{}", output.get(shown..).unwrap_or_default());
        std::io::stdout().flush()?;
        shown = output.len();
        if let Some(status) = child.try_wait()? {
            bail!("it exited with {status}; its output is in {}", log_path.display());
        }
        let file = StackFile::read(folder)?.filter(|file| file.pid == child.id());
        if let Some(file) = file
            && client.until_ready(&file, Duration::ZERO).await.is_ok()
        {
            return banner::print(folder, &file, "`cargo run -- down`").await;
        }
        if began.elapsed() > START_TIMEOUT {
            bail!("it is not ready after {START_TIMEOUT:?}; its output is in {}", log_path.display());
        }
    }
}

/// Stops the running system and waits for its exit.
pub(crate) async fn down(folder: Folder) -> Result<()> {
    if folder.lock()?.is_some() {
        println!("Nothing runs in {}.", folder.path().display());
        return Ok(());
    }
    let file = StackFile::read(&folder)?.context("it is still starting; try again later")?;
    let pid = i32::try_from(file.pid).ok().and_then(Pid::from_raw).context("stack.json names no process")?;
    kill_process(pid, Signal::TERM).context("signalling it to stop")?;
    let began = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    while folder.lock()?.is_none() {
        ticks.tick().await;
        if began.elapsed() > Duration::from_secs(60) {
            bail!("process {} has not exited after a minute", file.pid);
        }
    }
    println!("Stopped. The data stays in {}.", folder.path().display());
    Ok(())
}

/// Prints the running services and stores. The exit code is 0 if all services are ready and all stores accept connections.
pub(crate) async fn status(folder: Folder) -> Result<ExitCode> {
    let file = StackFile::read(&folder)?.filter(|_| matches!(folder.lock(), Ok(None)));
    let Some(file) = file else {
        println!("Nothing runs in {}.", folder.path().display());
        return Ok(ExitCode::FAILURE);
    };
    let client = Client::new()?;
    let mut all_ready = true;
    println!("{:<14} {:>8} {:>9}  {:<24} state", "service", "pid", "RSS", "address");
    for (name, service) in &file.services {
        let ready = client.is_ready(&service.metrics_url).await;
        all_ready &= ready;
        let state = if ready { "ready" } else { "NOT READY" };
        println!("{name:<14} {:>8} {:>9}  {:<24} {state}", service.pid, resident(service.pid), service.url);
    }
    println!("\n{:<14} {:>8} {:>9}  {:<24} state", "store", "pid", "RSS", "address");
    for (name, store) in &file.stores {
        let ready = accepts_connections(&store.address).await;
        all_ready &= ready;
        let state = if ready { "ready" } else { "DOWN" };
        let pid = store.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        let memory = store.pid.map_or_else(|| "-".to_owned(), resident);
        println!("{name:<14} {pid:>8} {memory:>9}  {:<24} {state}", store.address);
    }
    println!("\n{}   sites at *.{}   logs in {}", file.base_url, file.sites_domain, file.log_dir);
    Ok(if all_ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns whether a store accepts connections.
async fn accepts_connections(address: &str) -> bool {
    let connect = tokio::net::TcpStream::connect(address);
    tokio::time::timeout(Duration::from_secs(2), connect).await.is_ok_and(|connected| connected.is_ok())
}

/// Returns the resident memory of a process from `/proc`.
fn resident(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kilobytes.map_or_else(|| "-".to_owned(), |kilobytes: u64| format!("{} MB", kilobytes / 1024))
}

/// Deletes everything in the data directory.
pub(crate) fn reset(folder: &Folder, yes: bool) -> Result<()> {
    let Some(_lock) = folder.lock()? else {
        bail!("something runs in {}; stop it first: down", folder.path().display())
    };
    if !yes {
        print!("Delete every database, event and secret in {}? [y/N] ", folder.path().display());
        std::io::stdout().flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        if !answer.trim().eq_ignore_ascii_case("y") {
            println!("Nothing was deleted.");
            return Ok(());
        }
    }
    sandbox::dirs::erase(&folder.part("postgres"))?;
    for name in ["redis", "clickhouse", "blobs", "segments", "settings", "locations", "logs"] {
        match std::fs::remove_dir_all(folder.part(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    for name in [StackFile::NAME, "secrets.json", "trial.json"] {
        folder.remove(name);
    }
    println!("{} is empty.", folder.path().display());
    Ok(())
}
