//! The order of the layers and the error of each rejected setting.

use std::time::Duration;

use serde::Deserialize;
use toml::Table;

use super::*;

const DEFAULTS: &str = r#"
[listen]
main = "127.0.0.1:8081"
ops = "127.0.0.1:9081"

[postgres]
# The server's URL.
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

fn load_error(sources: &Sources) -> String {
    load::<Config>(DEFAULTS, sources).unwrap_err().to_string()
}

fn file(text: &str) -> Sources {
    let unique = format!("config-test-{}-{:p}.toml", std::process::id(), text);
    let path = std::env::temp_dir().join(unique);
    std::fs::write(&path, text).unwrap();
    Sources { file: Some(path), ..Sources::default() }
}

#[test]
fn the_defaults_alone_are_a_complete_configuration() {
    let loaded = load::<Config>(DEFAULTS, &Sources::default()).unwrap();
    assert_eq!(loaded.config.trial.claim_window, Duration::from_hours(24));
    assert_eq!(loaded.base.listen.main.port(), 8081);
    assert_eq!(loaded.base.telemetry.otlp_metrics_interval, Duration::from_secs(15));
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
        "digits stay a string where the default is a string"
    );
    assert_eq!(config.postgres.hosts, ["a", "b"]);
    assert!((config.trial.share - 1.0).abs() < f64::EPSILON);
    assert!(config.trial.enabled);
}

#[test]
fn rejects_an_unknown_key_and_suggests_the_most_similar_one() {
    assert_eq!(
        load_error(&environment(&[("WEBRUNTIME_POSTGRES__MAX_CONECTIONS", "2")])),
        "WEBRUNTIME_POSTGRES__MAX_CONECTIONS: unknown key `postgres.max_conections`, \
         did you mean `postgres.max_connections`?"
    );
    let from_file = load_error(&file("[trail]\nclaim_window = '1h'\n"));
    assert!(from_file.ends_with("unknown key `trail`, did you mean `trial`?"), "{from_file}");
    let deep = Sources { set: vec!["postgres.url.scheme=x".into()], ..Sources::default() };
    assert_eq!(load_error(&deep), "--set postgres.url.scheme: `postgres.url`: it is a value, not a section");
}

const RENAMED: Defaults = Defaults {
    toml: DEFAULTS,
    renamed_keys: &[
        ("postgres.connections", "postgres.max_connections"),
        ("sign_in", "identity"),
        ("trials", "trial"),
        ("trials.claim_within", "trial.claim_window"),
    ],
};

#[test]
fn rejects_the_old_name_of_a_key_and_names_the_new_one() {
    let error = |sources: &Sources| load::<Config>(RENAMED, sources).unwrap_err().to_string();
    let set = |entry: &str| Sources { set: vec![entry.to_owned()], ..Sources::default() };

    let from_file = error(&file("[postgres]\nconnections = 5\n"));
    assert!(
        from_file.ends_with(".toml: `postgres.connections` is now called `postgres.max_connections`"),
        "{from_file}"
    );
    assert_eq!(
        error(&environment(&[("WEBRUNTIME_POSTGRES__CONNECTIONS", "5")])),
        "WEBRUNTIME_POSTGRES__CONNECTIONS: `postgres.connections` is now called `postgres.max_connections`"
    );
    assert_eq!(
        error(&set("postgres.connections=5")),
        "--set postgres.connections: `postgres.connections` is now called `postgres.max_connections`"
    );
}

#[test]
fn rejects_the_old_name_of_a_section_in_every_source() {
    let error = |sources: &Sources| load::<Config>(RENAMED, sources).unwrap_err().to_string();
    let from_file = error(&file("[sign_in.github]\nclient_id = 'a'\n"));
    assert!(from_file.ends_with("`sign_in.github.client_id` is now called `identity.github.client_id`"));
    let from_file = error(&file("[trials]\nclaim_within = '1h'\n"));
    assert!(from_file.ends_with("`trials.claim_within` is now called `trial.claim_window`"), "{from_file}");
    let variable = environment(&[("WEBRUNTIME_TRIALS__ENABLED", "true")]);
    assert!(error(&variable).ends_with("`trials.enabled` is now called `trial.enabled`"));
    let option = Sources { set: vec!["trials.enabled=true".to_owned()], ..Sources::default() };
    assert!(error(&option).ends_with("`trials.enabled` is now called `trial.enabled`"));
}

#[test]
fn rejects_the_old_name_of_a_base_key() {
    let text = load_error(&environment(&[("WEBRUNTIME_TELEMETRY__OTLP_METRICS_EVERY", "5s")]));
    assert!(
        text.ends_with("`telemetry.otlp_metrics_every` is now called `telemetry.otlp_metrics_interval`"),
        "{text}"
    );
    assert!(schema::Schema::new(BASE_DEFAULTS).is_err(), "its sections belong to no service");
    for (_, new) in BASE_DEFAULTS.renamed_keys {
        let set = Sources { set: vec![format!("{new}=1s")], ..Sources::default() };
        load::<Config>(DEFAULTS, &set).unwrap();
    }
}

#[test]
fn a_renamed_key_must_lead_from_a_missing_key_to_an_existing_one() {
    for renamed_keys in [&[("trial.share", "trial.enabled")], &[("trial.part", "trial.portion")]] {
        let defaults = Defaults { toml: DEFAULTS, renamed_keys };
        let error = load::<Config>(defaults, &Sources::default()).unwrap_err();
        assert!(matches!(error, Error::Defaults { .. }), "{error}");
    }
}

#[test]
fn ignores_and_reports_a_section_of_another_service() {
    let mut sources = environment(&[("WEBRUNTIME_CLICKHOUSE__URL", "http://x"), ("PATH", "/bin")]);
    sources.set = vec!["segments.dir=/tmp".into(), "trial.enabled=false".into()];
    let loaded = load::<Config>(DEFAULTS, &sources).unwrap();
    assert!(!loaded.config.trial.enabled);
    assert_eq!(loaded.unused, ["WEBRUNTIME_CLICKHOUSE__URL", "--set segments.dir"]);
}

#[test]
fn a_program_may_take_the_file_of_another_one() {
    let text = "[segments]\ndir = '/tmp'\n[trial]\nenabled = false\n";
    assert!(load_error(&file(text)).contains("unknown key `segments`"));
    let sources = Sources { skips_unknown_sections: true, ..file(text) };
    assert!(!load::<Config>(DEFAULTS, &sources).unwrap().config.trial.enabled);
    let sources = Sources { skips_unknown_sections: true, ..file("[trial]\nenable = false\n") };
    assert!(load_error(&sources).contains("unknown key `trial.enable`"));
}

#[test]
fn rejects_a_wrong_value_by_key_without_repeating_the_value() {
    let text = load_error(&environment(&[("WEBRUNTIME_POSTGRES__MAX_CONNECTIONS", "hunter2")]));
    assert_eq!(
        text,
        "WEBRUNTIME_POSTGRES__MAX_CONNECTIONS: `postgres.max_connections`: expected a whole number"
    );
    let text = load_error(&environment(&[("WEBRUNTIME_TRIAL__CLAIM_WINDOW", "soon")]));
    let expected = "WEBRUNTIME_TRIAL__CLAIM_WINDOW: `trial.claim_window`: not a duration";
    assert!(text.starts_with(expected), "{text}");
    let text = load_error(&file("[listen]\nmain = 'localhost'\n"));
    assert!(text.contains(".toml: `listen.main`: invalid socket address"), "{text}");
    let text = load_error(&file("[postgres]\nmax_connections = 'ten'\n"));
    assert!(text.ends_with("`postgres.max_connections`: expected integer, found string"), "{text}");
    let text = load_error(&Sources { set: vec!["postgres.url".into()], ..Sources::default() });
    assert_eq!(text, "--set postgres.url: expected section.key=value");
}

#[test]
fn an_empty_default_section_accepts_any_key() {
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
fn a_secret_of_an_open_section_is_a_text_and_never_shown() {
    let sources = environment(&[
        ("WEBRUNTIME_IDENTITY__GITHUB__CLIENT_SECRET", "4815162342"),
        ("WEBRUNTIME_IDENTITY__GITHUB__PORT", "8080"),
    ]);
    let config = load::<Config>(DEFAULTS, &sources).unwrap().config;
    let github = config.identity.get("github").unwrap();
    assert_eq!(github.get("client_secret").unwrap().as_str(), Some("4815162342"));
    assert_eq!(github.get("port").unwrap().as_integer(), Some(8080));
    for sources in [
        file("[identity.github]\nclient_secret = 4815162342\n"),
        environment(&[("WEBRUNTIME_IDENTITY", "{ github = { client_secret = 4815162342 } }")]),
    ] {
        let text = load_error(&sources);
        assert!(
            text.ends_with("`identity.github.client_secret`: expected a text in quotes, found integer"),
            "{text}"
        );
    }
}

#[test]
fn our_otlp_variable_overrides_the_standard_one() {
    let standard = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318");
    let loaded = load::<Config>(DEFAULTS, &environment(&[standard])).unwrap();
    assert_eq!(loaded.base.telemetry.otlp_endpoint, "http://a:4318");
    let ours = ("WEBRUNTIME_TELEMETRY__OTLP_ENDPOINT", "http://b:4318");
    let loaded = load::<Config>(DEFAULTS, &environment(&[ours, standard])).unwrap();
    assert_eq!(loaded.base.telemetry.otlp_endpoint, "http://b:4318");
}

#[test]
fn debug_output_hides_secrets() {
    let sources = environment(&[("WEBRUNTIME_POSTGRES__PASSWORD", "hunter2")]);
    let config = load::<Config>(DEFAULTS, &sources).unwrap().config;
    assert!(!format!("{config:?}").contains("hunter2"));
}
