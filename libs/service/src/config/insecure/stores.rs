//! The stores of an installation: who may reach them.

use std::net::IpAddr;

use ipnet::IpNet;
use url::Url;

use super::settings::Settings;
use super::weak_secrets::passwords_of;

/// Settings with the addresses of stores.
const STORES: [&str; 4] = ["store.url", "redis.url", "warehouse.url", "blobs.endpoint"];
/// Stores that accept connections without a password unless they are told otherwise, and what they are.
const OPEN_STORES: [(&str, &str, &str); 2] =
    [("redis.url", "redis.password", "Redis"), ("warehouse.url", "warehouse.password", "ClickHouse")];
/// The private networks. Stores with names most often have addresses in one of them.
const PRIVATE_NETWORKS: [&str; 5] = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fd00::/8"];

/// A store on another machine that every program in its network can read and change.
pub(super) fn without_password(settings: Settings<'_>) -> Vec<String> {
    let is_open = |path: &str, password: &str| {
        let is_remote = remote(settings, path).is_some_and(|host| !host.is_empty())
            || (path == "redis.url" && !remote_sentinels(settings).is_empty());
        let url = settings.text(path).and_then(|url| Url::parse(url).ok());
        is_remote
            && url.is_none_or(|url| passwords_of(&url).iter().all(String::is_empty))
            && settings.text(password).is_none_or(str::is_empty)
    };
    let open = OPEN_STORES.into_iter().filter(|(url, password, _)| is_open(url, password));
    open.map(|(url, password, name)| {
        format!(
            "`{url}` is on another machine and `{password}` is empty, so all programs of its network can use this {name}: set \
             a password there and here"
        )
    })
    .collect()
}

/// Accounts choose the addresses of webhooks, so an exception for a store's network opens the store to them.
pub(super) fn reached_by_accounts(settings: Settings<'_>) -> Vec<String> {
    let entries = settings.list("outbound.allow").unwrap_or_default();
    let stores: Vec<(&str, String)> = STORES
        .into_iter()
        .filter_map(|path| Some((path, remote(settings, path)?)))
        .chain(remote_sentinels(settings).into_iter().map(|host| ("redis.sentinels", host)))
        .collect();
    let covered = entries.into_iter().filter_map(|entry| {
        let (path, _) = stores.iter().find(|(_, host)| covers(entry, host))?;
        Some(format!(
            "`outbound.allow` has `{entry}`, which covers the store of `{path}` or the network it may be in, so any account \
             could send requests to it: allow the addresses of the receivers alone"
        ))
    });
    covered.collect()
}

/// Returns the host of a store on another machine.
fn remote(settings: Settings<'_>, path: &str) -> Option<String> {
    remote_host(settings.text(path)?)
}

/// Returns the hosts of Sentinels on other machines. Those name the Redis servers, which are close to them.
fn remote_sentinels(settings: Settings<'_>) -> Vec<String> {
    let sentinels = settings.list("redis.sentinels").unwrap_or_default();
    let url = |sentinel: &str| {
        if sentinel.contains("://") { sentinel.to_owned() } else { format!("redis://{sentinel}") }
    };
    sentinels.into_iter().filter_map(|sentinel| remote_host(&url(sentinel))).collect()
}

fn remote_host(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    let is_local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    (!is_local).then_some(host)
}

/// Of a store with a name the address is not known here, so an exception for a whole private network covers it.
fn covers(entry: &str, host: &str) -> bool {
    let address = host.parse::<IpAddr>().ok();
    let network = entry.parse::<IpNet>().ok().or_else(|| Some(IpNet::from(entry.parse::<IpAddr>().ok()?)));
    if let Some(network) = network {
        let whole = || {
            let mut private = PRIVATE_NETWORKS.iter().filter_map(|text| text.parse::<IpNet>().ok());
            private.any(|private| network.contains(&private))
        };
        return address.map_or_else(whole, |address| network.contains(&address));
    }
    let entry = entry.to_ascii_lowercase();
    let name = entry.rsplit_once(':').map_or(entry.as_str(), |(name, _port)| name).trim_end_matches('.');
    match name.strip_prefix('*') {
        Some(end) => host.ends_with(end),
        None => name == host,
    }
}

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::*;

    fn table(settings: &str) -> Table {
        toml::from_str(settings).unwrap()
    }

    #[test]
    fn a_store_on_another_machine_needs_a_password() {
        let redis = |url: &str, password: &str| {
            let table = table(&format!("[redis]\nurl = '{url}'\npassword = '{password}'"));
            without_password(Settings(&table)).len()
        };
        assert_eq!(redis("redis://redis:6379", ""), 1);
        assert_eq!(redis("rediss://10.0.0.5:6379", ""), 1);
        assert_eq!(redis("redis://redis:6379", "k8XzPq4LmN"), 0);
        assert_eq!(redis("redis://:k8XzPq4LmN@redis:6379", ""), 0);
        for local in ["redis://127.0.0.1:6379", "redis://localhost", "redis://[::1]:6379"] {
            assert_eq!(redis(local, ""), 0, "{local}");
        }
        let behind_sentinels = |sentinel: &str, password: &str| {
            let table = table(&format!(
                "[redis]\nurl = 'redis://127.0.0.1'\nsentinels = ['{sentinel}']\npassword = '{password}'"
            ));
            without_password(Settings(&table)).len()
        };
        assert_eq!(behind_sentinels("sentinel:26379", ""), 1);
        assert_eq!(behind_sentinels("sentinel:26379", "k8XzPq4LmN"), 0);
        assert_eq!(behind_sentinels("127.0.0.1:26379", ""), 0);
        let warehouse = table("[warehouse]\nurl = 'http://clickhouse:8123'\npassword = ''");
        let found = without_password(Settings(&warehouse));
        assert!(found.len() == 1 && found[0].contains("`warehouse.password`"), "{found:?}");
    }

    #[test]
    fn accounts_may_not_reach_the_stores() {
        let allow = |store: &str, entry: &str| {
            let table =
                table(&format!("[store]\nurl = 'postgres://{store}/web'\n[outbound]\nallow = ['{entry}']"));
            reached_by_accounts(Settings(&table)).len()
        };
        for (store, entry) in [
            ("postgres:5432", "172.16.0.0/12"),
            ("postgres:5432", "10.0.0.0/8"),
            ("postgres:5432", "postgres:5432"),
            ("db.internal", "*.internal"),
            ("10.0.0.5", "10.0.0.0/24"),
            ("10.0.0.5", "10.0.0.5"),
            ("[fd00::5]", "fd00::/8"),
        ] {
            assert_eq!(allow(store, entry), 1, "{store} {entry}");
        }
        for (store, entry) in [
            ("postgres:5432", "10.1.2.0/24"),
            ("postgres:5432", "hooks.internal:8080"),
            ("10.0.0.5", "172.16.0.0/12"),
            ("127.0.0.1", "10.0.0.0/8"),
        ] {
            assert_eq!(allow(store, entry), 0, "{store} {entry}");
        }
    }
}
