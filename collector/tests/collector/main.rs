//! Tests the collector on real backends, including kills and outages.

#[cfg(test)]
mod browser;
#[cfg(test)]
mod collect;
#[cfg(test)]
mod fault_proxy;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod quota;
#[cfg(test)]
mod salts;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod sites;
#[cfg(test)]
mod tracker;
