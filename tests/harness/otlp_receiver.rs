//! Rotel, a third-party OTLP receiver from PyPI, between the services and a sink.

use std::process::Stdio;

use anyhow::{Context, Result};
use sandbox::port::{self, Reserved};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::{Packages, TraceSink, until};

/// A running receiver. It is killed on drop.
#[derive(Debug)]
pub struct OtlpReceiver {
    /// The value for the setting `telemetry.otlp_endpoint`.
    pub endpoint: String,
    _ports: [Reserved; 2],
    _process: Child,
}

impl OtlpReceiver {
    /// Starts the receiver of these packages. It forwards everything to the sink.
    pub async fn start(packages: &Packages, sink: &TraceSink) -> Result<Self> {
        let installed = packages.python()?;
        let mut asking = std::process::Command::new(installed.join("bin/python"));
        let asked = asking.args(["-c", "import rotel; print(rotel.__path__[0])"]).output()?;
        let folder = String::from_utf8(asked.stdout)?;
        let ports = [port::reserve()?, port::reserve()?];
        let [http, grpc] = ports.each_ref().map(|reserved| format!("127.0.0.1:{}", reserved.port));
        let mut command = Command::new(format!("{}/rotel-agent", folder.trim()));
        command.args(["start", "--exporter", "otlp", "--otlp-exporter-protocol", "http"]);
        command.args([
            "--otlp-http-endpoint",
            &http,
            "--otlp-grpc-endpoint",
            &grpc,
            "--batch-timeout",
            "100ms",
        ]);
        for signal in ["traces", "logs", "metrics"] {
            command.arg(format!("--otlp-exporter-{signal}-endpoint"));
            command.arg(format!("{}/v1/{signal}", sink.endpoint));
        }
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting rotel-agent of {folder:?}"))?;
        until("the OTLP receiver to listen", async || {
            if let Ok(Some(status)) = process.try_wait() {
                return Some(Err(anyhow::anyhow!("rotel-agent ended with {status}")));
            }
            TcpStream::connect(&http).await.ok().map(|_| Ok(()))
        })
        .await??;
        Ok(Self { endpoint: format!("http://{http}"), _ports: ports, _process: process })
    }
}
