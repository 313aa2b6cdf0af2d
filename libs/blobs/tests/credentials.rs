//! S3 credentials from the environment, where the settings name no key. The environment of a process can't be changed
//! safely, so a child process uses the store.

#![expect(clippy::unwrap_used, reason = "test helpers may panic")]

use std::process::Output;
use std::sync::{Arc, Mutex};

use blobs::{Blobs, Config, Name};
use bytes::Bytes;
use sandbox::s3::S3;
use sandbox::test::folder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

const NAME: Name = Name { account_id: Uuid::from_u128(1), sha256: [7; 32] };

/// Forwards connections to a server and records what clients send.
struct Recorder {
    endpoint: String,
    sent: Arc<Mutex<String>>,
}

impl Recorder {
    async fn start(server: &str) -> Self {
        let server = server.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let sent = Arc::<Mutex<String>>::default();
        let record = Arc::clone(&sent);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (mut from_client, mut to_client) = client.into_split();
                let server = TcpStream::connect(&server).await.unwrap();
                let (mut from_server, mut to_server) = server.into_split();
                let record = Arc::clone(&record);
                tokio::spawn(async move {
                    let mut buffer = vec![0; 1 << 16];
                    while let Ok(length @ 1..) = from_client.read(&mut buffer).await {
                        record.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..length]));
                        to_server.write_all(&buffer[..length]).await.unwrap();
                    }
                });
                tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
            }
        });
        Self { endpoint, sent }
    }

    fn sent(&self) -> String {
        self.sent.lock().unwrap().to_lowercase()
    }
}

/// Answers every request with the temporary credentials of a role, as the agents of containers do.
async fn agent() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/credentials", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let body = format!(
                r#"{{"AccessKeyId": "{}", "SecretAccessKey": "{}", "Token": "token-of-the-role", "Expiration": "2100-01-01T00:00:00Z"}}"#,
                S3::KEY_ID,
                S3::SECRET
            );
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _request = client.read(&mut [0; 4096]).await;
            let _closed = client.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    url
}

/// Uses the store at `endpoint` in a child process with these variables. The settings have this key id.
async fn use_store(endpoint: &str, key_id: &str, variables: &[(&str, &str)]) -> Output {
    let others = [("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1"), ("AWS_ENDPOINT", "http://127.0.0.1:1")];
    tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_uses_the_store", "--ignored", "--nocapture"])
        .env("BLOBS_TEST_ENDPOINT", endpoint)
        .env("BLOBS_TEST_KEY_ID", key_id)
        .envs(others)
        .envs(variables.iter().copied())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap()
}

/// Runs in a child process of the tests.
#[tokio::test]
#[ignore = "part of other tests"]
#[expect(clippy::disallowed_methods, reason = "the parent test passes the settings in the environment")]
async fn child_that_uses_the_store() {
    let Ok(endpoint) = std::env::var("BLOBS_TEST_ENDPOINT") else { return };
    let key_id = std::env::var("BLOBS_TEST_KEY_ID").unwrap();
    let secret = if key_id.is_empty() { "" } else { S3::SECRET };
    let config = Config {
        url: format!("s3://{}", S3::BUCKET),
        endpoint,
        region: "us-east-1".to_owned(),
        key_id,
        secret: secret.into(),
        path_style: true,
    };
    let blobs = Blobs::connect(&config).unwrap();
    blobs.put(NAME, Bytes::from_static(b"x")).await.unwrap();
    assert!(blobs.contains(NAME).await.unwrap());
}

#[track_caller]
fn succeeded(output: &Output) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}{err}");
}

const OF_THE_ENVIRONMENT: [(&str, &str); 3] = [
    ("AWS_ACCESS_KEY_ID", S3::KEY_ID),
    ("AWS_SECRET_ACCESS_KEY", S3::SECRET),
    ("AWS_SESSION_TOKEN", "token-of-a-session"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_environment_is_used_with_its_session_token() {
    let s3 = S3::start().await.unwrap();
    let recorder = Recorder::start(&s3.endpoint()).await;
    succeeded(&use_store(&recorder.endpoint, "", &OF_THE_ENVIRONMENT).await);
    let sent = recorder.sent();
    assert!(sent.contains("x-amz-security-token: token-of-a-session"), "{sent}");
    assert!(
        sent.contains("x-amz-security-token,") || sent.contains("x-amz-security-token;"),
        "it is signed: {sent}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_role_of_a_container_is_used() {
    let s3 = S3::start().await.unwrap();
    let recorder = Recorder::start(&s3.endpoint()).await;
    let folder = folder();
    std::fs::create_dir_all(folder.path()).unwrap();
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, "a-token-for-the-agent").unwrap();
    let variables = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", agent().await),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token_file.display().to_string()),
    ];
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    succeeded(&use_store(&recorder.endpoint, "", &variables).await);
    assert!(recorder.sent().contains("x-amz-security-token: token-of-the-role"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_settings_wins_over_the_environment() {
    let s3 = S3::start().await.unwrap();
    let recorder = Recorder::start(&s3.endpoint()).await;
    let wrong =
        [("AWS_ACCESS_KEY_ID", "AKOTHER"), ("AWS_SECRET_ACCESS_KEY", "x"), ("AWS_SESSION_TOKEN", "y")];
    succeeded(&use_store(&recorder.endpoint, S3::KEY_ID, &wrong).await);
    assert!(!recorder.sent().contains("x-amz-security-token"));
}
