//! Settings with which the edge refuses to start.

use edge_server::DEFAULTS;
use sandbox::test::folder;
use service::config::{Sources, load};
use service::{Listeners, Shutdown};
use tokio::process::Command;

#[tokio::test]
async fn a_folder_for_blobs_is_refused_with_several_edges() {
    let folder = folder();
    let set = vec![
        "http.base_url=http://localhost:8080".to_owned(),
        "http.sites_domain=localhost".to_owned(),
        "http.edges=2".to_owned(),
        "secrets.edge_token=0123456789abcdef".to_owned(),
        format!("blobs.url={}", folder.path().display()),
    ];
    let config = load(DEFAULTS, &Sources { set, ..Sources::default() }).unwrap().config;
    let listeners = Listeners::on_free_ports().unwrap();
    let error = edge_server::run(config, listeners, Shutdown::new()).await.unwrap_err();
    let error = format!("{error:#}");
    assert!(error.contains("2 edges (http.edges) can't share: use s3://bucket"), "{error}");
}

#[tokio::test]
async fn the_program_names_all_unsafe_settings_and_no_value() {
    let folder = folder();
    std::fs::create_dir_all(folder.path()).unwrap();
    let token = folder.path().join("edge_token");
    std::fs::write(&token, "changeme-changeme\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_edge-server"))
        .env("WEBRUNTIME_HTTP__BASE_URL", "https://app.runtime.example")
        .env("WEBRUNTIME_SECRETS__EDGE_TOKEN_FILE", &token)
        .env("WEBRUNTIME_STORE__PASSWORD", "postgres")
        .output()
        .await
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    for key in [
        "`secrets.edge_token` has an example value",
        "`store.password` has an example value",
        "`listen.https`",
    ] {
        assert!(text.contains(key), "{text}");
    }
    assert!(!text.contains("changeme"), "{text}");
}
