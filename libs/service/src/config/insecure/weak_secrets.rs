//! Secrets that can be guessed: example values, placeholders, short and repetitive ones. Examples go live when an
//! installation is copied from a guide.

use std::collections::BTreeSet;

use toml::{Table, Value};
use url::Url;

use super::super::secret_names::{is_secret_name, secrets_of};
use super::settings::Settings;

/// Values that guides and images use, in lower case.
const EXAMPLES: [&str; 33] = [
    "0123456789abcdef",
    "123456",
    "12345678",
    "123456789",
    "1234567890",
    "admin",
    "administrator",
    "abc123",
    "clickhouse",
    "default",
    "demo",
    "example",
    "foobar",
    "guest",
    "hunter2",
    "letmein",
    "minioadmin",
    "none",
    "null",
    "pass",
    "passw0rd",
    "password",
    "password1",
    "postgres",
    "qwerty",
    "redis",
    "root",
    "s3cret",
    "secret",
    "test",
    "user",
    "web-runtime",
    "webruntime",
];
/// Parts of values that are to be replaced, in lower case.
const PLACEHOLDERS: [&str; 13] = [
    "change-me",
    "change_me",
    "changeme",
    "change-this",
    "changethis",
    "replace-me",
    "replace_me",
    "replaceme",
    "your-secret",
    "your_secret",
    "your-password",
    "your_password",
    "placeholder",
];
/// Least length of a key that this installation makes for itself, in characters.
const MIN_KEY_CHARS: usize = 16;
/// Least length of a password, in characters.
const MIN_PASSWORD_CHARS: usize = 8;
/// Of random keys of 16 hexadecimal digits, about one in 30,000 has fewer different ones; of those of 64, practically none.
const MIN_DIFFERENT_CHARS: usize = 6;

/// Returns a sentence for each weak secret. The sentences contain no values.
pub(super) fn problems(defaults: &Table, settings: Settings<'_>) -> Vec<String> {
    let mut secrets = Vec::new();
    collect(defaults, settings.0, "", &mut secrets);
    let mut problems: Vec<String> =
        secrets.iter().filter_map(|(path, value)| Some(sentence(path, weakness(path, value)?))).collect();
    problems.extend(equal_keys(&secrets));
    problems
}

/// Adds the paths and values of all secrets that are set. In a section of the operator's keys, their names tell which are.
fn collect<'a>(defaults: &Table, table: &'a Table, prefix: &str, secrets: &mut Vec<(String, &'a str)>) {
    let known: BTreeSet<&str> = secrets_of(defaults).collect();
    for (key, value) in table {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::String(text) => {
                let is_secret = known.contains(key.as_str()) || (defaults.is_empty() && is_secret_name(key));
                if is_secret && !text.is_empty() {
                    secrets.push((path, text));
                }
            }
            Value::Table(inner) => {
                let no_defaults = Table::new();
                let defaults = defaults.get(key).and_then(Value::as_table).unwrap_or(&no_defaults);
                collect(defaults, inner, &path, secrets);
            }
            _ => {}
        }
    }
}

/// Why a secret can be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weakness {
    Example,
    Short(usize),
    Repetitive,
}

fn weakness(path: &str, value: &str) -> Option<Weakness> {
    if is_key(path) {
        return keys_of(value).find_map(weakness_of_key);
    }
    match value.contains("://").then(|| Url::parse(value)) {
        None => weakness_of_password(value),
        Some(Ok(url)) => passwords_of(&url).iter().find_map(|password| weakness_of_password(password)),
        // The service rejects it.
        Some(Err(_)) => None,
    }
}

/// The passwords of a URL: the one before the host, and those that Postgres' drivers accept as a parameter.
pub(super) fn passwords_of(url: &Url) -> Vec<String> {
    let parameters = url.query_pairs().filter(|(name, _)| name == "password");
    let before_host = url.password().map(str::to_owned);
    before_host.into_iter().chain(parameters.map(|(_, value)| value.into_owned())).collect()
}

/// Keys that this installation makes for itself; others are shared with stores and providers.
fn is_key(path: &str) -> bool {
    path.starts_with("secrets.")
}

/// The keys of a setting: several during a rotation, each with or without an id in front.
fn keys_of(value: &str) -> impl Iterator<Item = &str> {
    let keys = value.split(',').map(str::trim).filter(|key| !key.is_empty());
    keys.map(|key| match key.split_once(':') {
        Some((id, key)) if id.len() <= 4 => key,
        _ => key,
    })
}

fn weakness_of_key(key: &str) -> Option<Weakness> {
    if is_example(key) {
        return Some(Weakness::Example);
    }
    if key.chars().count() < MIN_KEY_CHARS {
        return Some(Weakness::Short(MIN_KEY_CHARS));
    }
    is_repetitive(key).then_some(Weakness::Repetitive)
}

fn weakness_of_password(password: &str) -> Option<Weakness> {
    if is_example(password) {
        return Some(Weakness::Example);
    }
    let is_short = password.chars().count() < MIN_PASSWORD_CHARS;
    is_short.then_some(Weakness::Short(MIN_PASSWORD_CHARS))
}

fn is_example(value: &str) -> bool {
    let value = value.trim().to_lowercase();
    let is_template = value.contains("${")
        || value.contains("{{")
        || value.contains('…')
        || (value.starts_with('<') && value.ends_with('>'));
    let is_repeated = |example: &str| !value.is_empty() && value.replace(example, "").is_empty();
    is_template
        || PLACEHOLDERS.iter().any(|part| value.contains(part))
        || EXAMPLES.iter().any(|example| is_repeated(example))
}

fn is_repetitive(key: &str) -> bool {
    key.chars().collect::<BTreeSet<_>>().len() < MIN_DIFFERENT_CHARS
}

fn sentence(path: &str, weakness: Weakness) -> String {
    let what = match weakness {
        Weakness::Example => "has an example value".to_owned(),
        Weakness::Short(min) => format!("has fewer than {min} characters"),
        Weakness::Repetitive => "repeats a few characters".to_owned(),
    };
    let remedy = match path.rsplit('.').next().unwrap_or_default() {
        _ if is_key(path) => "make another one with `openssl rand -hex 32`",
        "secret" | "client_secret" => "set the one that its provider issued",
        _ => "make another password with `openssl rand -hex 32`, and set it at the server too",
    };
    format!("`{path}` {what}: {remedy}")
}

/// A key with two purposes is as safe as the less protected one: inner services know the edge's token, but not the master
/// key.
fn equal_keys(secrets: &[(String, &str)]) -> Vec<String> {
    let keys: Vec<_> = secrets.iter().filter(|(path, _)| is_key(path)).collect();
    let pairs =
        keys.iter().enumerate().flat_map(|(at, one)| keys.iter().skip(at + 1).map(move |other| (one, other)));
    let equal = pairs
        .filter(|((_, one), (_, other))| keys_of(one).any(|key| keys_of(other).any(|other| other == key)));
    equal
        .map(|((one, _), (other, _))| {
            format!(
                "`{one}` and `{other}` have the same value: make one for each with `openssl rand -hex 32`"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "8f14e45fceea167a5a36dedd4bea2543c9f0f895fb98ab9159f51fd0297e236d";
    const OTHER_KEY: &str = "1679091c5a880faf6fb5e6087eb1b2dcd3d9446802a44259755d38e6d163e820";
    const DEFAULTS: &str = "
        [secrets]
        master_key = ''
        master_key_file = ''
        edge_token = ''
        edge_token_file = ''
        [store]
        url = 'postgres://webruntime@127.0.0.1:5432/webruntime'
        url_file = ''
        password = ''
        password_file = ''
        user = 'default'
        [providers]
    ";

    fn problems_of(path: &str, value: &str) -> Vec<String> {
        let defaults: Table = toml::from_str(DEFAULTS).unwrap();
        let mut table = defaults.clone();
        let mut into = &mut table;
        let (section, key) = path.rsplit_once('.').unwrap();
        for key in section.split('.') {
            let next = into.entry(key).or_insert_with(|| Value::Table(Table::new()));
            into = next.as_table_mut().unwrap();
        }
        into.insert(key.to_owned(), Value::String(value.to_owned()));
        problems(&defaults, Settings(&table))
    }

    #[test]
    fn random_keys_and_real_passwords_are_accepted() {
        for (path, value) in [
            ("secrets.master_key", KEY),
            ("secrets.master_key", &format!("2027:{OTHER_KEY},0:{KEY}")),
            ("secrets.edge_token", "a-token-for-tests-alone"),
            ("secrets.edge_token", ""),
            ("store.password", "correct horse"),
            ("store.url", "postgres://webruntime@db/webruntime"),
            ("store.url", "postgres://postgres:correct%20horse@db/postgres"),
            ("store.user", "postgres"),
            ("providers.google.client_secret", "GOCSPX-4f8a91"),
            ("providers.google.label", "Example"),
        ] {
            assert!(problems_of(path, value).is_empty(), "{path} {value}: {:?}", problems_of(path, value));
        }
    }

    #[test]
    fn keys_that_can_be_guessed_are_rejected_with_what_to_do() {
        for (value, reason) in [
            ("changeme-changeme", "has an example value"),
            ("CHANGE-ME-to-a-long-random-text", "has an example value"),
            ("<new key of 64 digits>", "has an example value"),
            ("${MASTER_KEY}", "has an example value"),
            ("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "has an example value"),
            ("secretsecretsecret", "has an example value"),
            ("k8Xz", "has fewer than 16 characters"),
            (&"0".repeat(64), "repeats a few characters"),
            (&"ab".repeat(32), "repeats a few characters"),
            (&format!("2027:{KEY},{}", "f".repeat(64)), "repeats a few characters"),
        ] {
            let found = problems_of("secrets.master_key", value);
            let expected =
                format!("`secrets.master_key` {reason}: make another one with `openssl rand -hex 32`");
            assert_eq!(found, [expected], "{value}");
        }
    }

    #[test]
    fn passwords_that_can_be_guessed_are_rejected_also_within_a_url() {
        for (path, value, reason) in [
            ("store.password", "postgres", "has an example value"),
            ("store.password", "horse", "has fewer than 8 characters"),
            ("store.url", "postgres://postgres:password@db/web", "has an example value"),
            ("store.url", "postgres://web:123@db/web", "has fewer than 8 characters"),
            ("store.url", "postgres://web@db/web?sslmode=require&password=password", "has an example value"),
            ("providers.google.client_secret", "…", "has an example value"),
        ] {
            let found = problems_of(path, value);
            assert_eq!(found.len(), 1, "{path} {value}");
            assert!(found[0].starts_with(&format!("`{path}` {reason}: ")), "{found:?}");
        }
    }

    #[test]
    fn two_keys_with_the_same_value_are_rejected() {
        let defaults: Table = toml::from_str(DEFAULTS).unwrap();
        let equal = |master_key: &str, edge_token: &str| {
            let settings = format!("[secrets]\nmaster_key = '{master_key}'\nedge_token = '{edge_token}'");
            problems(&defaults, Settings(&toml::from_str(&settings).unwrap()))
        };
        assert!(equal(KEY, OTHER_KEY).is_empty());
        for master_key in [KEY.to_owned(), format!("2027:{OTHER_KEY},0:{KEY}")] {
            let found = equal(&master_key, KEY);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains("`secrets.master_key`") && found[0].contains("`secrets.edge_token`"));
        }
    }
}
