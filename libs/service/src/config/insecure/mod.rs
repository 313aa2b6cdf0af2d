//! Settings that are fine on localhost and unsafe anywhere else. A service names all of them at once and doesn't start.

mod combinations;
mod settings;
mod weak_secrets;

use std::net::SocketAddr;

use domain::addresses::Addresses;
use toml::Table;

use self::settings::Settings;
use super::layers::Merged;

/// Returns a sentence for each unsafe setting; none on localhost. `defaults` has a key `X_file` beside each secret `X`.
pub(super) fn problems(defaults: &Table, merged: &Merged) -> Vec<String> {
    let settings = Settings(&merged.table);
    if is_local(settings, merged.origins.contains_key("http.base_url")) {
        return Vec::new();
    }
    let mut problems = weak_secrets::problems(defaults, settings);
    problems.extend(combinations::problems(settings));
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
        None => {
            let address = settings.text("listen.main").and_then(|text| text.parse::<SocketAddr>().ok());
            address.is_none_or(|address| address.ip().is_loopback())
        }
    }
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
             terminates TLS, its address in `http.trusted_proxies`"
        );
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
