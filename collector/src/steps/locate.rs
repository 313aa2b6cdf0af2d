//! Locates an IP address by files in MaxMind's format: country, region and city. The address itself is not stored.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use maxminddb::Reader;
use serde::Deserialize;

use crate::incoming_event::IncomingEvent;

/// The location of an address. Unknown parts are empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Location {
    /// ISO 3166-1 alpha-2 code.
    pub(crate) country: String,
    /// ISO 3166-2 code, or the name if the file has no codes.
    pub(crate) region: String,
    /// The English name.
    pub(crate) city: String,
}

/// Looks up addresses. Without files every location is unknown.
pub(crate) struct Locate {
    files: Vec<Reader<Vec<u8>>>,
}

/// A record, in the nested format of MaxMind or the flat one of DB-IP.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Record<'a> {
    #[serde(borrow)]
    country: Option<Country<'a>>,
    subdivisions: Vec<Subdivision<'a>>,
    city: Option<City<'a>>,
    country_code: Option<&'a str>,
    state1: Option<&'a str>,
}

#[derive(Deserialize)]
struct Country<'a> {
    iso_code: Option<&'a str>,
}

#[derive(Deserialize)]
struct Subdivision<'a> {
    iso_code: Option<&'a str>,
    #[serde(borrow, default)]
    names: Names<'a>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum City<'a> {
    Flat(#[serde(borrow)] &'a str),
    Nested {
        #[serde(borrow, default)]
        names: Names<'a>,
    },
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Names<'a> {
    en: Option<&'a str>,
}

impl Locate {
    /// Reads the files into memory. The error names the file that could not be read.
    pub(crate) fn new(files: &[PathBuf]) -> anyhow::Result<Self> {
        let open = |path: &PathBuf| {
            Reader::open_readfile(path)
                .with_context(|| format!("reading the location file {}", path.display()))
        };
        Ok(Self { files: files.iter().map(open).collect::<Result<_, _>>()? })
    }

    pub(crate) fn step(&self, event: &IncomingEvent) -> Location {
        self.files.iter().find_map(|file| find(file, event.ip.to_canonical())).unwrap_or_default()
    }
}

/// Returns `None` if the file has no record of the address, as an IPv4 file has none of IPv6 addresses.
fn find(file: &Reader<Vec<u8>>, ip: IpAddr) -> Option<Location> {
    let record: Record<'_> = file.lookup(ip).ok()?.decode().ok()??;
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let country = record.country.and_then(|country| country.iso_code).or(record.country_code);
    let subdivision = record.subdivisions.first();
    let code = subdivision
        .and_then(|subdivision| subdivision.iso_code)
        .zip(country)
        .map(|(code, country)| format!("{country}-{code}"));
    let name = subdivision.and_then(|subdivision| subdivision.names.en).or(record.state1);
    let city = match record.city {
        Some(City::Flat(name)) => Some(name),
        Some(City::Nested { names }) => names.en,
        None => None,
    };
    Some(Location { country: text(country), region: code.unwrap_or_else(|| text(name)), city: text(city) })
}

#[cfg(test)]
mod tests;
