//! ClickHouse over HTTPS with a private authority.

use std::path::PathBuf;

use sandbox::test::{TestAuthority, TlsFront, folder};
use warehouse::Config;

async fn ping(config: &Config) -> Result<(), String> {
    let warehouse = warehouse::connect(config).map_err(|error| error.to_string())?;
    warehouse.ping().await.map_err(|error| format!("{error:?}"))
}

#[tokio::test]
async fn with_a_ca_file_only_its_servers_are_trusted_and_only_by_their_names() {
    let (authority, other) = (TestAuthority::new(), TestAuthority::new());
    let clickhouse = sandbox::test::clickhouse().await;
    let port = clickhouse.url.rsplit(':').next().unwrap().trim_end_matches('/').parse().unwrap();
    let front = TlsFront::start(&authority.issue("localhost"), port).await;
    let config = |host: &str, ca_file: PathBuf| Config {
        url: format!("https://{host}:{}", front.port()),
        ca_file,
        ..clickhouse.config()
    };

    assert_eq!(ping(&config("localhost", authority.ca_file())).await, Ok(()));
    for (host, ca_file, reason) in [
        ("localhost", other.ca_file(), "UnknownIssuer"),
        ("localhost", PathBuf::new(), "UnknownIssuer"),
        ("127.0.0.1", authority.ca_file(), "NotValidForName"),
    ] {
        let refused = ping(&config(host, ca_file)).await.unwrap_err();
        assert!(refused.contains(reason), "{host}: {refused}");
    }
}

#[test]
fn an_unusable_ca_file_is_named() {
    let folder = folder();
    std::fs::create_dir_all(folder.path()).unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "no certificate").unwrap();
    for (url, file, reason) in [
        ("https://localhost", empty.clone(), format!("{}: it has no certificate in PEM", empty.display())),
        ("https://localhost", "/no/such/ca.pem".into(), "/no/such/ca.pem: No such file".to_owned()),
        ("http://localhost", empty, "a warehouse.url that begins with https://".to_owned()),
    ] {
        let config = Config {
            url: url.to_owned(),
            database: "x".to_owned(),
            user: "default".to_owned(),
            password: String::new(),
            ca_file: file,
            cluster: String::new(),
        };
        let error = warehouse::connect(&config).err().unwrap().to_string();
        assert!(error.starts_with("warehouse.ca_file") && error.contains(&reason), "{error}");
    }
}
