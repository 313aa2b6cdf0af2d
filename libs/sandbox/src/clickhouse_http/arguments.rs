//! The command line of the HTTP interface.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Command-line arguments of the HTTP interface.
#[derive(Debug, Clone, Args)]
pub struct ClickhouseHttpArgs {
    /// The libchdb.so to load
    #[arg(long)]
    pub lib: PathBuf,
    /// Directory of the data; created if missing
    #[arg(long)]
    pub data: PathBuf,
    /// Address to serve on, such as 127.0.0.1:8123
    #[arg(long)]
    pub listen: SocketAddr,
    /// Name of the only user
    #[arg(long, default_value = "default")]
    pub user: String,
    /// File with the user's password; without it, every process on this machine has access
    #[arg(long)]
    pub password_file: Option<PathBuf>,
    /// Maximum concurrent statements; further ones wait
    #[arg(long, default_value_t = 4)]
    pub max_concurrent: usize,
    /// Directory for `BACKUP … TO File('name')`; without it, backups are refused
    #[arg(long)]
    pub backups: Option<PathBuf>,
}
