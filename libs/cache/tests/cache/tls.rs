//! Redis over TLS with a private authority, and a password beside the URL.

use std::path::PathBuf;
use std::pin::pin;

use cache::{Bus, BusEvent, Config};
use futures::StreamExt as _;
use sandbox::test::{KillableRedis, TestAuthority, TlsFront, folder, with_timeout};

use crate::support::command;

fn config(url: String, ca_file: PathBuf) -> Config {
    Config { ca_file, ..Config::new(url, "tls") }
}

/// Publishes over one connection what another one receives.
async fn exchange(config: &Config) -> Result<(), String> {
    let bus = Bus::<u32>::connect(config, &config.prefix).map_err(|error| error.to_string())?;
    bus.publish(&0).await.map_err(|error| format!("{error:?}"))?;
    let mut events = pin!(bus.subscribe());
    assert_eq!(with_timeout(events.next()).await, Some(BusEvent::Lagged));
    bus.publish(&7).await.map_err(|error| error.to_string())?;
    assert_eq!(with_timeout(events.next()).await, Some(BusEvent::Message(7)));
    Ok(())
}

#[tokio::test]
async fn with_a_ca_file_only_its_servers_are_trusted_and_only_by_their_names() {
    let (authority, other) = (TestAuthority::new(), TestAuthority::new());
    let redis = KillableRedis::start().await;
    let front = TlsFront::start(&authority.issue("localhost"), redis.port()).await;
    let at = |host: &str| format!("rediss://{host}:{}", front.port());

    assert_eq!(exchange(&config(at("localhost"), authority.ca_file())).await, Ok(()));
    for (url, ca_file, reason) in [
        (at("localhost"), other.ca_file(), "UnknownIssuer"),
        (at("localhost"), PathBuf::new(), "UnknownIssuer"),
        (at("127.0.0.1"), authority.ca_file(), "not valid for name"),
        (format!("rediss://localhost:{}", redis.port()), authority.ca_file(), ""),
    ] {
        let refused = exchange(&config(url.clone(), ca_file)).await.unwrap_err();
        assert!(refused.contains(reason), "{url}: {refused}");
    }
}

#[tokio::test]
async fn the_password_beside_the_url_replaces_that_of_the_url() {
    let redis = KillableRedis::start().await;
    command(redis.url(), &["CONFIG", "SET", "requirepass", "right/@%41"]).await;
    let port = redis.port();
    for (url, password, is_right) in [
        (format!("redis://127.0.0.1:{port}"), "right/@%41", true),
        (format!("redis://:wrong@127.0.0.1:{port}"), "right/@%41", true),
        (format!("redis://default:wrong@127.0.0.1:{port}"), "right/@%41", true),
        (format!("redis://:right%2F%40%2541@127.0.0.1:{port}"), "", true),
        (format!("redis://127.0.0.1:{port}"), "wrong", false),
        (format!("redis://127.0.0.1:{port}"), "", false),
    ] {
        let config = Config { password: password.into(), ..Config::new(url, "password") };
        assert_eq!(exchange(&config).await.is_ok(), is_right, "{config:?}");
    }
}

#[tokio::test]
async fn an_unusable_ca_file_is_named() {
    let folder = folder();
    std::fs::create_dir_all(folder.path()).unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "no certificate").unwrap();
    for (url, file, reason) in [
        ("rediss://localhost", empty.clone(), format!("{}: it has no certificate in PEM", empty.display())),
        ("rediss://localhost", "/no/such/ca.pem".into(), "/no/such/ca.pem: No such file".to_owned()),
        ("redis://localhost", empty, "redis.ca_file needs a redis.url that begins with rediss://".to_owned()),
    ] {
        let error = exchange(&config(url.to_owned(), file)).await.unwrap_err();
        assert!(error.contains(&reason), "{error}");
    }
}
