//! The parts of a backup: how each is made and restored.

pub(super) mod blob_pool;
pub(super) mod clickhouse;
pub(super) mod pgbackrest;

/// A part of a backup. Parts are made and restored in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Postgres,
    ClickHouse,
    Blobs,
}

impl Part {
    /// All parts in order.
    pub const ALL: [Self; 3] = [Self::Postgres, Self::ClickHouse, Self::Blobs];

    /// Returns the name in manifests, metrics and arguments.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::ClickHouse => "clickhouse",
            Self::Blobs => "blobs",
        }
    }

    /// Parses a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.as_str() == text)
    }
}
