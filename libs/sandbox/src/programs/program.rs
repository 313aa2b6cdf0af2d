//! The programs of the backends.

use std::path::PathBuf;

/// The two programs of Postgres.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Postgres {
    /// The server.
    pub server: PathBuf,
    /// The program that creates data directories.
    pub initdb: PathBuf,
}

/// The program behind ClickHouse's HTTP interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClickHouse {
    /// The server `clickhouse`.
    Server(PathBuf),
    /// The engine as a library, for [`crate::clickhouse_http`].
    Library(PathBuf),
}

/// The source of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Source {
    /// The installed program, or else the fetched one.
    #[default]
    Any,
    /// The pinned copy, even if the program is installed.
    Fetched,
}
