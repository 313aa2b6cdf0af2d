//! Clients of another make: OpenSSL's `s_client` and curl.

use std::net::SocketAddr;
use std::process::Stdio;

use sandbox::test::until;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::tls_client::{SITE, TlsEdge};

/// Runs a program with this input and returns its output and errors.
async fn run(program: &str, arguments: &[&str], input: &str) -> String {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("install openssl and curl");
    child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let output = sandbox::test::with_timeout(child.wait_with_output()).await.unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

async fn s_client(edge: SocketAddr, arguments: &[&str]) -> String {
    let edge = edge.to_string();
    let input = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    run("openssl", &[&["s_client", "-connect", &edge, "-ign_eof"][..], arguments].concat(), input).await
}

#[tokio::test]
async fn openssl_connects_in_both_versions_and_resumes_at_another_edge() {
    let tls = TlsEdge::start(&[]).await;
    let other = tls.edge.start_another();
    let folder = sandbox::test::folder();
    std::fs::create_dir_all(folder.path()).unwrap();
    let session = folder.path().join("session").display().to_string();
    for (option, version) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        until(async || {
            let name = ["-servername", "localhost", option];
            let first = s_client(tls.edge.https(), &[&name[..], &["-sess_out", &session]].concat()).await;
            assert!(first.contains(&format!("New, {version}")) && first.contains("Web Runtime"), "{first}");
            let second = s_client(other, &[&name[..], &["-sess_in", &session]].concat()).await;
            // Each edge has the keys a moment after its start; without them there is no session to resume.
            second.contains(&format!("Reused, {version}")) && second.contains("Web Runtime")
        })
        .await;
    }
    let old =
        s_client(tls.edge.https(), &["-servername", "localhost", "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"])
            .await;
    assert!(old.contains("SSL alert number") && !old.contains("Web Runtime"), "{old}");
}

#[tokio::test]
async fn openssl_negotiates_protocols_and_names() {
    let tls = TlsEdge::start(&[]).await;
    let edge = tls.edge.https();
    let chosen = s_client(edge, &["-servername", "localhost", "-alpn", "nonsense,http/1.1"]).await;
    assert!(chosen.contains("ALPN protocol: http/1.1") && chosen.contains("Web Runtime"), "{chosen}");
    let none = s_client(edge, &["-servername", "localhost", "-alpn", "nonsense"]).await;
    assert!(none.contains("alert no application protocol"), "{none}");
    let nameless = s_client(edge, &["-noservername"]).await;
    assert!(nameless.contains("Web Runtime"), "{nameless}");
    let wrong = s_client(edge, &["-servername", "other.example.org"]).await;
    assert!(wrong.contains("alert number 112"), "{wrong}");
}

#[tokio::test]
async fn openssl_may_not_renegotiate() {
    let tls = TlsEdge::start(&[]).await;
    let edge = tls.edge.https().to_string();
    let asked =
        run("openssl", &["s_client", "-connect", &edge, "-servername", "localhost", "-tls1_2"], "R\n").await;
    assert!(asked.contains("RENEGOTIATING") && asked.contains("no renegotiation"), "{asked}");
    tls.connect("localhost").await.unwrap();
}

#[tokio::test]
async fn curl_trusts_the_certificates_and_sees_a_misdirected_request() {
    let tls = TlsEdge::start(&[]).await;
    tls.edge.account("quiet-otter").await.page("index", "<p>over tls").await;
    let folder = sandbox::test::folder();
    std::fs::create_dir_all(folder.path()).unwrap();
    let authority = folder.path().join("ca.pem");
    std::fs::write(&authority, &tls.authority.pem).unwrap();
    let authority = authority.display().to_string();
    let port = tls.edge.https().port();
    let (url, resolve) = (format!("https://{SITE}:{port}/"), format!("{SITE}:{port}:127.0.0.1"));
    let curl = async |more: &[&str]| {
        let arguments = [
            &["--silent", "--show-error", "--include", "--cacert", &authority, "--resolve", &resolve, &url][..],
            more,
        ];
        run("curl", &arguments.concat(), "").await
    };
    for (version, status) in [("--http2", "HTTP/2 200"), ("--http1.1", "HTTP/1.1 200 OK")] {
        let page = curl(&[version]).await;
        assert!(page.starts_with(status) && page.ends_with("<p>over tls"), "{page}");
        let other = curl(&[version, "--header", "Host: localhost"]).await;
        assert!(other.contains(" 421"), "{other}");
    }
}
