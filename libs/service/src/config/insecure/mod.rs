//! Settings that are fine on localhost and unsafe anywhere else. A service names all of them at once and doesn't start.

mod combinations;
mod settings;
mod stores;
mod weak_secrets;

use std::net::SocketAddr;

use domain::addresses::Addresses;
use toml::Table;

use self::settings::Settings;
use super::layers::Merged;
use super::sources::Sources;

/// Returns a sentence for each unsafe setting; none on localhost. `defaults` has a key `X_file` beside each secret `X`.
pub(super) fn problems(defaults: &Table, merged: &Merged, sources: &Sources) -> Vec<String> {
    let settings = Settings(&merged.table);
    let has_base_url = merged.origins.contains_key("http.base_url");
    if is_local(settings, has_base_url) {
        // A trial with an address that other machines reach: they reach it by that, whatever the base URL says.
        let is_open =
            has_base_url && merged.origins.contains_key("listen.main") && !listens_on_loopback(settings);
        return if is_open { weak_secrets::problems(defaults, settings) } else { Vec::new() };
    }
    let mut problems = weak_secrets::problems(defaults, settings);
    // A program that takes the settings of others may have those of an inner service, which lack these two.
    let is_set = |path: &&str| merged.origins.contains_key(*path);
    let may_be_edge =
        !sources.skips_unknown_sections || ["listen.https", "http.trusted_proxies"].iter().any(is_set);
    problems.extend(combinations::problems(settings, may_be_edge));
    problems
}

/// Returns whether only this machine reaches the service. Nothing is served before the base URL is set. The collector has no
/// such setting: it is local if it listens on loopback.
fn is_local(settings: Settings<'_>, has_base_url: bool) -> bool {
    match settings.text("http.base_url") {
        // The service itself rejects an invalid address.
        Some(base_url) => {
            !has_base_url || Addresses::new(base_url, "").map_or(true, |addresses| addresses.is_local())
        }
        None => listens_on_loopback(settings),
    }
}

fn listens_on_loopback(settings: Settings<'_>) -> bool {
    let address = settings.text("listen.main").and_then(|text| text.parse::<SocketAddr>().ok());
    address.is_none_or(|address| address.ip().is_loopback())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::super::{Sources, load};

    const EDGE: &str = "
        [listen]
        main = '127.0.0.1:8080'
        https = ''
        ops = '127.0.0.1:9080'
        [http]
        base_url = 'https://app.example.com'
        trusted_proxies = []
        [secrets]
        edge_token = ''
        edge_token_file = ''
    ";
    const COLLECTOR: &str = "
        [listen]
        main = '127.0.0.1:8082'
        ops = '127.0.0.1:9082'
        [secrets]
        edge_token = ''
        edge_token_file = ''
    ";

    #[derive(Debug, Deserialize)]
    struct Config {}

    fn outcome(defaults: &'static str, set: &[&str]) -> Result<(), String> {
        let sources = Sources { set: set.iter().map(ToString::to_string).collect(), ..Sources::default() };
        load::<Config>(defaults, &sources).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn all_problems_are_named_at_once_without_a_value() {
        let set = ["http.base_url=https://app.runtime.example", "secrets.edge_token=changeme-changeme"];
        assert_eq!(
            outcome(EDGE, &set).unwrap_err(),
            "refused to start, because these settings are not safe:\n\
             - `secrets.edge_token` has an example value: make another one with `openssl rand -hex 32`\n\
             - nothing serves `http.base_url` over TLS: set `listen.https` and `secrets.master_key`, or, if a proxy in front \
             terminates TLS, its address in `http.trusted_proxies` (beside that of a proxy with `listen.proxy_protocol`). On a \
             private network or VPN, `insecure.allow_plain_http = true` accepts that API keys cross it unencrypted"
        );
    }

    #[test]
    fn a_program_with_the_settings_of_others_checks_tls_if_they_are_the_edges() {
        let outcome = |set: &[&str]| {
            let set = set.iter().map(ToString::to_string).collect();
            let sources = Sources { set, skips_unknown_sections: true, ..Sources::default() };
            load::<Config>(EDGE, &sources).map(|_| ()).map_err(|error| error.to_string())
        };
        let base_url = "http.base_url=https://app.runtime.example";
        assert_eq!(outcome(&[base_url]), Ok(()), "those of an inner service");
        for set in ["listen.https=", "http.trusted_proxies="] {
            assert!(outcome(&[base_url, set]).unwrap_err().contains("over TLS"), "{set}");
        }
        assert_eq!(outcome(&[base_url, "listen.https=0.0.0.0:443"]), Ok(()));
    }

    #[test]
    fn plain_http_on_a_private_network_has_a_setting_of_its_own() {
        let base_url = "http.base_url=http://runtime.lan";
        assert!(outcome(EDGE, &[base_url]).unwrap_err().contains("insecure.allow_plain_http"));
        assert_eq!(outcome(EDGE, &[base_url, "insecure.allow_plain_http=true"]), Ok(()));
    }

    #[test]
    fn secrets_are_checked_on_localhost_if_other_machines_may_connect() {
        let set = [
            "http.base_url=http://localhost:8080",
            "secrets.edge_token=changeme",
            "listen.main=0.0.0.0:8080",
        ];
        let text = outcome(EDGE, &set).unwrap_err();
        assert!(text.contains("`secrets.edge_token`") && !text.contains("TLS"), "{text}");
    }

    #[test]
    fn localhost_and_the_defaults_alone_may_have_any_values() {
        for base_url in ["http://localhost:8080", "http://127.0.0.1", "https://localhost:8443"] {
            let base_url = format!("http.base_url={base_url}");
            assert_eq!(outcome(EDGE, &[&base_url, "secrets.edge_token=changeme"]), Ok(()));
        }
        assert_eq!(outcome(EDGE, &["secrets.edge_token=changeme"]), Ok(()));
        assert_eq!(outcome(COLLECTOR, &["secrets.edge_token=changeme"]), Ok(()));
    }

    #[test]
    fn a_service_without_a_base_url_is_checked_unless_it_listens_on_loopback() {
        let set = ["listen.main=0.0.0.0:8082", "secrets.edge_token=changeme"];
        assert!(outcome(COLLECTOR, &set).unwrap_err().contains("`secrets.edge_token`"));
    }
}
