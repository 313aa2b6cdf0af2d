//! The layers and their refusals, as somebody who runs a service meets them.

use std::time::Duration;

use serde::Deserialize;

use super::*;

const DEFAULTS: &str = r#"
[listen]
main = "127.0.0.1:8081"
ops = "127.0.0.1:9081"

[postgres]
# Where it is.
url = "postgres://localhost/web"
password = ""
max_connections = 10
hosts = []

[trial]
claim_window = "24h"
enabled = true
share = 0.5

# Sign-in, by provider.
[identity]
"#;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    postgres: Postgres,
    trial: Trial,
    identity: Table,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Postgres {
    url: String,
    password: Secret,
    max_connections: u32,
    hosts: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trial {
    #[serde(with = "duration")]
    claim_window: Duration,
    enabled: bool,
    share: f64,
}

fn environment(pairs: &[(&str, &str)]) -> Sources {
    let environment = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Sources { environment, ..Sources::default() }
}

fn refusal(sources: &Sources) -> String {
    load::<Config>(DEFAULTS, sources).unwrap_err().to_string()
}

fn file(text: &str) -> Sources {
    let unique = format!("config-test-{}-{:p}.toml", std::process::id(), text);
    let path = std::env::temp_dir().join(unique);
    std::fs::write(&path, text).unwrap();
    Sources { file: Some(path), ..Sources::default() }
}

#[test]
fn defaults_alone_are_a_whole_configuration() {
    let loaded = load::<Config>(DEFAULTS, &Sources::default()).unwrap();
    assert_eq!(loaded.config.trial.claim_window, Duration::from_hours(24));
    assert_eq!(loaded.chassis.listen.main.port(), 8081);
    assert_eq!(loaded.chassis.telemetry.otlp_metrics_every, Duration::from_secs(15));
    assert!(loaded.unused.is_empty());
}

#[test]
fn set_beats_environment_beats_file_beats_defaults() {
    let mut sources =
        file("[postgres]\nurl = 'file'\nmax_connections = 1\npassword = 'file'\n[trial]\nshare = 1\n");
    sources.environment = environment(&[
        ("WEBRUNTIME_POSTGRES__MAX_CONNECTIONS", "2"),
        ("WEBRUNTIME_POSTGRES__PASSWORD", "12345"),
    ])
    .environment;
    sources.set = vec!["postgres.max_connections=3".into(), "postgres.hosts=a, b".into()];
    let config = load::<Config>(DEFAULTS, &sources).unwrap().config;
    assert_eq!(config.postgres.url, "file");
    assert_eq!(config.postgres.max_connections, 3);
    assert_eq!(
        config.postgres.password.expose_secret(),
        "12345",
        "digits stay a text where the default is one"
    );
    assert_eq!(config.postgres.hosts, ["a", "b"]);
    assert!((config.trial.share - 1.0).abs() < f64::EPSILON);
    assert!(config.trial.enabled);
}

#[test]
fn an_unknown_key_is_refused_with_its_path_and_the_nearest_one() {
    assert_eq!(
        refusal(&environment(&[("WEBRUNTIME_POSTGRES__MAX_CONECTIONS", "2")])),
        "WEBRUNTIME_POSTGRES__MAX_CONECTIONS: unknown key `postgres.max_conections`, \
         did you mean `postgres.max_connections`?"
    );
    let from_file = refusal(&file("[trail]\nclaim_window = '1h'\n"));
    assert!(from_file.ends_with("unknown key `trail`, did you mean `trial`?"), "{from_file}");
    let deep = Sources { set: vec!["postgres.url.scheme=x".into()], ..Sources::default() };
    assert_eq!(refusal(&deep), "--set postgres.url.scheme: `postgres.url`: it is a value, not a section");
}

#[test]
fn a_section_of_another_service_is_passed_over_and_reported() {
    let mut sources = environment(&[("WEBRUNTIME_CLICKHOUSE__URL", "http://x"), ("PATH", "/bin")]);
    sources.set = vec!["segments.dir=/tmp".into(), "trial.enabled=false".into()];
    let loaded = load::<Config>(DEFAULTS, &sources).unwrap();
    assert!(!loaded.config.trial.enabled);
    assert_eq!(loaded.unused, ["WEBRUNTIME_CLICKHOUSE__URL", "--set segments.dir"]);
}

#[test]
fn a_wrong_value_is_refused_by_name_and_never_repeated() {
    let text = refusal(&environment(&[("WEBRUNTIME_POSTGRES__MAX_CONNECTIONS", "hunter2")]));
    assert_eq!(
        text,
        "WEBRUNTIME_POSTGRES__MAX_CONNECTIONS: `postgres.max_connections`: expected a whole number"
    );
    let text = refusal(&environment(&[("WEBRUNTIME_TRIAL__CLAIM_WINDOW", "soon")]));
    let expected = "WEBRUNTIME_TRIAL__CLAIM_WINDOW: `trial.claim_window`: not a duration";
    assert!(text.starts_with(expected), "{text}");
    let text = refusal(&file("[listen]\nmain = 'localhost'\n"));
    assert!(text.contains(".toml: `listen.main`: invalid socket address"), "{text}");
    let text = refusal(&file("[postgres]\nmax_connections = 'ten'\n"));
    assert!(text.ends_with("`postgres.max_connections`: expected integer, found string"), "{text}");
    let text = refusal(&Sources { set: vec!["postgres.url".into()], ..Sources::default() });
    assert_eq!(text, "--set postgres.url: expected section.key=value");
}

#[test]
fn an_empty_default_section_takes_any_key() {
    let sources = environment(&[
        ("WEBRUNTIME_IDENTITY__GITHUB__CLIENT_ID", "abc"),
        ("WEBRUNTIME_IDENTITY__GITHUB__PKCE", "true"),
    ]);
    let config = load::<Config>(DEFAULTS, &sources).unwrap().config;
    let github = config.identity.get("github").unwrap();
    assert_eq!(github.get("client_id").unwrap().as_str(), Some("abc"));
    assert_eq!(github.get("pkce").unwrap().as_bool(), Some(true));
}

#[test]
fn the_standard_otlp_variable_works_and_our_own_name_wins() {
    let standard = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318");
    let loaded = load::<Config>(DEFAULTS, &environment(&[standard])).unwrap();
    assert_eq!(loaded.chassis.telemetry.otlp_endpoint, "http://a:4318");
    let ours = ("WEBRUNTIME_TELEMETRY__OTLP_ENDPOINT", "http://b:4318");
    let loaded = load::<Config>(DEFAULTS, &environment(&[ours, standard])).unwrap();
    assert_eq!(loaded.chassis.telemetry.otlp_endpoint, "http://b:4318");
}

#[test]
fn secrets_dont_show_in_debug_output() {
    let sources = environment(&[("WEBRUNTIME_POSTGRES__PASSWORD", "hunter2")]);
    let config = load::<Config>(DEFAULTS, &sources).unwrap().config;
    assert!(!format!("{config:?}").contains("hunter2"));
}
