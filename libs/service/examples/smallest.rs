//! A minimal service with one component. It is ready as soon as it runs, and SIGTERM or Ctrl-C stop it.
//! `cargo run -p service --example smallest -- --set greeting.text=Hi`

use std::process::ExitCode;

use axum::Router;
use axum::routing::get;
use serde::Deserialize;
use service::{Lifecycle, Listeners, Readiness, Shutdown};

const DEFAULTS: &str = r#"
[listen]
# Address of the service's own traffic.
main = "127.0.0.1:8080"
# Address of /healthz, /readyz and /metrics.
ops = "127.0.0.1:9080"

[greeting]
# The text of every response.
text = "Hello"
"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    greeting: Greeting,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Greeting {
    text: String,
}

async fn run(config: Config, listeners: Listeners, shutdown: Shutdown) -> anyhow::Result<()> {
    let app = Router::new().route("/", get(|| async { config.greeting.text }));
    let readiness = Readiness::new(&shutdown);
    let mut lifecycle = Lifecycle::new(shutdown.clone());
    let server = service::http::serve(listeners.main, app, shutdown, listeners.drain);
    lifecycle.spawn_server("greeter", listeners.drain, server);
    lifecycle.spawn_last("ops", service::ops::serve(listeners.ops, readiness, lifecycle.drained()));
    Ok(lifecycle.run(std::time::Duration::from_secs(15)).await?)
}

fn main() -> ExitCode {
    service::run_main("smallest", DEFAULTS, |started| {
        run(started.config, started.listeners, started.shutdown)
    })
}
