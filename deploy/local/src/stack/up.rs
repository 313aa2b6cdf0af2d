//! `up`: starts stores, schemas and services, in this order, and supervises them until shutdown.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use domain::addresses::Addresses;
use sandbox::port;
use service::{Shutdown, telemetry};
use tokio::sync::Mutex;

use super::backends::{Backends, Urls};
use super::https;
use super::locations;
use super::ports::check_is_free;
use super::settings::{Secrets, Settings};
use super::supervise::{Shared, SupervisedProcess, supervise};
use super::user_settings::UserSettings;
use crate::arguments::Up;
use crate::banner;
use crate::client::Client;
use crate::folder::Folder;
use crate::logs;
use crate::progress::Progress;
use crate::stack_file::{NAMES, Service, StackFile, Store};

const SITES_DOMAIN: &str = "localhost";
/// With https the sites have two labels above them, because clients refuse the wildcard `*.localhost`.
const HTTPS_SITES_DOMAIN: &str = "sites.localhost";
/// Enough for a first start on a slow machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts everything and runs until shutdown is requested.
pub(crate) async fn up(folder: Folder, up: Up) -> Result<()> {
    let Some(_lock) = folder.lock()? else {
        bail!("{}", folder.already_in_use());
    };
    let shutdown = Shutdown::new();
    shutdown.on_signals()?;
    let _telemetry = telemetry::init(&log_config(), "local")?;
    let progress = Progress::new();
    let started = shutdown.unless_requested(start(&folder, &up, &progress)).await;
    let Some(started) = started else { return Ok(()) };
    let (backends, file, _ports) = started?;
    let shared = Shared::new(Mutex::new(file));
    // The stores outlive the services.
    let stores_shutdown = Shutdown::new();
    let services = async {
        let watched = watch(&folder, &up, &shared, &progress, &shutdown).await;
        progress.step("stopping");
        folder.remove(StackFile::NAME);
        stores_shutdown.request();
        watched
    };
    let (watched, stopped) = tokio::join!(services, backends.supervise(&folder, &shared, &stores_shutdown));
    progress.done();
    watched.and(stopped)
}

/// The runner logs restarts and rotations; the services have logs of their own.
fn log_config() -> telemetry::Config {
    telemetry::Config {
        log: "warn,local=info".to_owned(),
        format: telemetry::Format::Text,
        otlp_endpoint: String::new(),
        otlp_metrics_interval: Duration::ZERO,
        settings_warnings: Vec::new(),
    }
}

/// Returns the stores, the stack file and the services' ports, which stay reserved while services may restart.
async fn start(
    folder: &Folder,
    up: &Up,
    progress: &Progress,
) -> Result<(Backends, StackFile, Vec<port::Reserved>)> {
    let user_settings = UserSettings::new(&up.set)?;
    // Two for each service, and one for https.
    let reserved = (0..=2 * NAMES.len()).map(|_| port::reserve()).collect::<Result<Vec<_>>>()?;
    let mut ports: Vec<u16> = reserved.iter().map(|one| one.port).collect();
    if up.port != 0 {
        check_is_free(up.port)?;
        ports[0] = up.port;
    }
    let free_https_port = ports.pop().context("no port for https")?;
    let https = https::address(up, &user_settings, free_https_port)?;
    let http_port = ports[0];
    let base_url = user_settings
        .get("http.base_url")
        .map_or_else(|| format!("http://localhost:{http_port}"), str::to_owned);
    let default_sites_domain = if up.https { HTTPS_SITES_DOMAIN } else { SITES_DOMAIN };
    let sites_domain = user_settings.get("http.sites_domain").unwrap_or(default_sites_domain).to_owned();
    let addresses = Addresses::new(&base_url, &sites_domain)?;
    if !addresses.is_local() {
        bail!("a local run serves this machine only: http.base_url must be on localhost, not {base_url}");
    }
    let (backends, location_files) = tokio::try_join!(
        Backends::start(folder, &user_settings, progress),
        locations::files(folder, up, &user_settings, progress),
    )?;
    let secrets = Secrets::configured(folder, &user_settings)?;
    if up.https {
        https::store_certificates(folder, &backends.urls, &secrets, &addresses).await?;
    }
    let https_port = https.map(|https| https.port());
    let file = StackFile { https_port, ..describe(folder, &backends.urls, base_url, sites_domain, &ports)? };
    let settings = Settings {
        base_url: &file.base_url,
        sites_domain: &file.sites_domain,
        urls: &backends.urls,
        secrets: &secrets,
        services: &file.services,
        https,
        location_files: &location_files,
        local_sign_in: !user_settings.has_any_below("signin.providers"),
    };
    settings.write(folder)?;
    Ok((backends, file, reserved))
}

/// Returns the stack file of the services to start. `ports` has two for each service; the first of all is the public one.
fn describe(
    folder: &Folder,
    urls: &Urls,
    base_url: String,
    sites_domain: String,
    ports: &[u16],
) -> Result<StackFile> {
    let mut services = BTreeMap::new();
    for (name, ports) in NAMES.into_iter().zip(ports.chunks(2)) {
        let [main, ops] = ports else { bail!("{name} has no ports") };
        let url = format!("http://127.0.0.1:{main}");
        let metrics_url = format!("http://127.0.0.1:{ops}/metrics");
        services.insert(name.to_owned(), Service { pid: 0, url, metrics_url });
    }
    Ok(StackFile {
        pid: std::process::id(),
        base_url,
        sites_domain,
        http_port: ports[0],
        https_port: None,
        services,
        stores: stores(urls)?,
        postgres_url: urls.postgres.clone(),
        redis_url: urls.redis.clone(),
        clickhouse_url: urls.clickhouse.clone(),
        clickhouse_user: urls.clickhouse_user.clone(),
        clickhouse_password: urls.clickhouse_password.clone(),
        log_dir: folder.logs()?.display().to_string(),
    })
}

/// Returns the stores' addresses, from their URLs. Of several ClickHouse servers, the first one's.
fn stores(urls: &Urls) -> Result<BTreeMap<String, Store>> {
    let clickhouse = urls.clickhouse.split(',').next().unwrap_or_default().to_owned();
    let named =
        [("postgres", &urls.postgres, 5432), ("redis", &urls.redis, 6379), ("clickhouse", &clickhouse, 8123)];
    named
        .into_iter()
        .map(|(name, url, default_port)| {
            let uri: http::Uri = url.parse().with_context(|| format!("the URL of {name}"))?;
            let host = uri.host().with_context(|| format!("the URL of {name} has no host"))?;
            let address = format!("{host}:{}", uri.port_u16().unwrap_or(default_port));
            Ok((name.to_owned(), Store { pid: None, address }))
        })
        .collect()
}

/// Starts the services, prints the banner once they are ready, and supervises them until `shutdown`.
async fn watch(
    folder: &Folder,
    up: &Up,
    shared: &Shared,
    progress: &Progress,
    shutdown: &Shutdown,
) -> Result<()> {
    progress.step("starting the services");
    let file = shared.lock().await.clone();
    let mut supervisors = tokio::task::JoinSet::new();
    for process in processes(folder, up)? {
        supervisors.spawn(supervise(process, folder.clone(), Arc::clone(shared), shutdown.clone()));
    }
    let ready = async {
        if up.only_stores {
            shared.lock().await.write(folder)?;
        } else {
            Client::new()?.until_ready(&file, START_TIMEOUT).await?;
        }
        progress.done();
        if up.detached { Ok(()) } else { banner::print(folder, &file, "Ctrl-C").await }
    };
    let started = tokio::select! {
        () = shutdown.requested() => Ok(()),
        outcome = ready => outcome,
        Some(ended) = supervisors.join_next() => ended?.context("a service can't be started"),
    };
    if started.is_ok() {
        tokio::select! {
            () = shutdown.requested() => {}
            failed = logs::rotate_large(folder) => failed?,
        }
    }
    shutdown.request();
    while let Some(ended) = supervisors.join_next().await {
        ended??;
    }
    started
}

fn processes(folder: &Folder, up: &Up) -> Result<Vec<SupervisedProcess>> {
    let logs = folder.logs()?;
    let process = |name: &'static str, which: &str, services: Vec<&'static str>| {
        let mut arguments = vec![which.to_owned(), "--dir".to_owned(), folder.path().display().to_string()];
        arguments.extend(up.set.iter().flat_map(|entry| ["--set".to_owned(), entry.clone()]));
        SupervisedProcess { name, services, arguments, log: logs.join(format!("{name}.log")) }
    };
    if up.only_stores {
        return Ok(Vec::new());
    }
    if up.processes {
        return Ok(NAMES.into_iter().map(|name| process(name, name, vec![name])).collect());
    }
    Ok(vec![process("services", "all", NAMES.to_vec())])
}
