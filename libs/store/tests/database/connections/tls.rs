//! Postgres over TLS with a private authority, and a password beside the URL.

use std::path::PathBuf;

use sandbox::postgres::{IssuedCertificate, Options, Postgres};
use sandbox::progress::Progress;
use sandbox::test::{TestAuthority, folder};
use store::Config;

async fn start(certificate: Option<IssuedCertificate>) -> Postgres {
    let options = Options { certificate, max_connections: 20, ..Options::temporary() };
    Postgres::start(options, &Progress::silent()).await.unwrap()
}

/// The server's URL with another host, and without a password.
fn url_without_password(server: &Postgres, host: &str) -> String {
    format!("postgres://postgres@{host}:{}/postgres", server.port())
}

fn password_of(server: &Postgres) -> String {
    let url = server.url();
    let (_, rest) = url.split_once("postgres://postgres:").unwrap();
    rest.split_once('@').unwrap().0.to_owned()
}

fn config(server: &Postgres, host: &str, ca_file: PathBuf) -> Config {
    Config {
        password: password_of(server).into(),
        ca_file,
        ..Config::new(url_without_password(server, host), 1)
    }
}

/// Connects, and returns whether the connection is encrypted.
async fn is_encrypted(config: &Config) -> Result<bool, String> {
    let db = store::connect(config).map_err(|error| error.to_string())?;
    let statement = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
    sqlx::query_scalar(statement).fetch_one(&*db).await.map_err(|error: sqlx::Error| format!("{error:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_ca_file_only_its_servers_are_trusted_and_only_by_their_names() {
    let (authority, other) = (TestAuthority::new(), TestAuthority::new());
    let server = start(Some(authority.issue("localhost"))).await;
    assert_eq!(is_encrypted(&config(&server, "localhost", authority.ca_file())).await, Ok(true));

    let wrong_authority = is_encrypted(&config(&server, "localhost", other.ca_file())).await.unwrap_err();
    assert!(wrong_authority.contains("UnknownIssuer"), "{wrong_authority}");
    let wrong_name = is_encrypted(&config(&server, "127.0.0.1", authority.ca_file())).await.unwrap_err();
    assert!(wrong_name.contains("NotValidForName"), "{wrong_name}");

    // The URL can't lower what the file demands.
    let lowered = Config {
        url: format!("{}?sslmode=disable", url_without_password(&server, "127.0.0.1")),
        ..config(&server, "127.0.0.1", authority.ca_file())
    };
    assert!(is_encrypted(&lowered).await.unwrap_err().contains("NotValidForName"));
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_ca_file_a_server_without_tls_is_refused() {
    let (authority, server) = (TestAuthority::new(), start(None).await);
    assert_eq!(is_encrypted(&config(&server, "localhost", PathBuf::new())).await, Ok(false));
    let refused = is_encrypted(&config(&server, "localhost", authority.ca_file())).await.unwrap_err();
    assert!(refused.contains("server does not support TLS"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_password_beside_the_url_replaces_that_of_the_url() {
    let server = start(None).await;
    let wrong = server.url().replace(&password_of(&server), "wrong");
    let with = |password: String| Config { password: password.into(), ..Config::new(wrong.clone(), 1) };
    assert!(is_encrypted(&with(String::new())).await.unwrap_err().contains("28P01"));
    assert_eq!(is_encrypted(&with(password_of(&server))).await, Ok(false));
}

#[test]
fn an_unusable_ca_file_is_named() {
    let folder = folder();
    std::fs::create_dir_all(folder.path()).unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "no certificate").unwrap();
    for (file, reason) in
        [(empty, "it has no certificate in PEM"), ("/no/such/ca.pem".into(), "No such file")]
    {
        let config = Config { ca_file: file.clone(), ..Config::new("postgres://localhost/x", 1) };
        let error = store::connect(&config).unwrap_err().to_string();
        assert!(error.starts_with(&format!("store.ca_file: {}: {reason}", file.display())), "{error}");
        assert!(!format!("{config:?}").contains("localhost"));
    }
}
