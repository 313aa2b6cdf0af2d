//! Combinations of settings that are unsafe beyond localhost.

use ipnet::IpNet;

use super::settings::Settings;
use super::stores;

/// Networks of this machine alone, and of link-local services such as the metadata of cloud machines.
const OWN_NETWORKS: [&str; 4] = ["127.0.0.0/8", "::1/128", "169.254.0.0/16", "fe80::/10"];

/// Returns a sentence for each unsafe combination.
pub(super) fn problems(settings: Settings<'_>, may_be_edge: bool) -> Vec<String> {
    let mut problems = Vec::new();
    problems.extend(may_be_edge.then(|| without_tls(settings)).flatten());
    problems.extend(outbound_to_this_machine(settings));
    problems.extend(stores::without_password(settings));
    problems.extend(stores::reached_by_accounts(settings));
    problems
}

/// The edge's rule: API keys and sessions must not cross a network unencrypted. A peer that sends PROXY headers passes on
/// connections as they are; it is no proxy that terminates TLS, so a lone entry of its address is not enough.
fn without_tls(settings: Settings<'_>) -> Option<String> {
    let https = settings.text("listen.https")?;
    let proxies = settings.list("http.trusted_proxies")?;
    let passed_on = usize::from(settings.text("listen.proxy_protocol") == Some("required"));
    let is_plain = https.is_empty() && proxies.len() <= passed_on;
    (is_plain && !settings.is_on("insecure.allow_plain_http")).then(|| {
        "nothing serves `http.base_url` over TLS: set `listen.https` and `secrets.master_key`, or, if a proxy in front \
         terminates TLS, its address in `http.trusted_proxies` (beside that of a proxy with `listen.proxy_protocol`). On a \
         private network or VPN, `insecure.allow_plain_http = true` accepts that API keys cross it unencrypted"
            .to_owned()
    })
}

/// Accounts choose the addresses of webhooks, so an exception for this machine opens its stores and its ops ports to them.
fn outbound_to_this_machine(settings: Settings<'_>) -> Option<String> {
    let entries = settings.list("outbound.allow")?;
    let own = entries.into_iter().find(|entry| leads_to_this_machine(entry))?;
    Some(format!(
        "`outbound.allow` has `{own}`, so any account could send requests to this machine's own services: remove it"
    ))
}

fn leads_to_this_machine(entry: &str) -> bool {
    let network =
        entry.parse::<IpNet>().ok().or_else(|| Some(IpNet::from(entry.parse::<std::net::IpAddr>().ok()?)));
    if let Some(network) = network {
        let own = OWN_NETWORKS.iter().filter_map(|text| text.parse::<IpNet>().ok());
        let mut overlapping =
            own.filter(|own| own.contains(&network.addr()) || network.contains(&own.addr()));
        return overlapping.next().is_some();
    }
    let name =
        entry.rsplit_once(':').map_or(entry, |(name, _port)| name).trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::*;

    fn problems_of(settings: &str) -> Vec<String> {
        problems(Settings(&toml::from_str::<Table>(settings).unwrap()), true)
    }

    #[test]
    fn an_edge_needs_tls_of_its_own_or_a_proxy() {
        let edge = |https: &str, proxies: &str| {
            problems_of(&format!("[listen]\nhttps = '{https}'\n[http]\ntrusted_proxies = [{proxies}]"))
        };
        assert_eq!(edge("", "").len(), 1);
        assert!(edge("0.0.0.0:443", "").is_empty());
        assert!(edge("", "'10.0.0.0/8'").is_empty());
        let behind_passing_proxy = |proxies: &str, more: &str| {
            problems_of(&format!(
                "[listen]\nhttps = ''\nproxy_protocol = 'required'\n[http]\ntrusted_proxies = [{proxies}]\n{more}"
            ))
        };
        assert_eq!(behind_passing_proxy("'10.0.0.2'", "").len(), 1, "it passes on plain connections");
        assert!(behind_passing_proxy("'10.0.0.2', '192.0.2.1'", "").is_empty());
        assert!(behind_passing_proxy("'10.0.0.2'", "[insecure]\nallow_plain_http = true").is_empty());
        assert!(
            problems_of("[http]\nbase_url = 'https://x.example'").is_empty(),
            "an inner service has no such listener"
        );
    }

    #[test]
    fn accounts_may_not_reach_this_machine() {
        let allow = |entry: &str| problems_of(&format!("[outbound]\nallow = ['192.168.1.0/24', '{entry}']"));
        for entry in [
            "127.0.0.0/8",
            "127.0.0.1",
            "127.0.0.1/32",
            "0.0.0.0/0",
            "::/0",
            "::1",
            "169.254.169.254",
            "169.254.0.0/16",
            "fe80::1",
            "localhost",
            "localhost:3000",
            "*.localhost",
            "LOCALHOST.",
        ] {
            let found = allow(entry);
            assert_eq!(found.len(), 1, "{entry}");
            assert!(found[0].contains(&format!("`{entry}`")), "{found:?}");
        }
        for entry in
            ["10.0.0.0/8", "10.1.2.3", "fd00::/8", "hooks.internal:8080", "*.internal", "localhost.example"]
        {
            assert!(allow(entry).is_empty(), "{entry}");
        }
    }
}
