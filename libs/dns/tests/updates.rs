//! Updates of a record over a real server, Knot DNS.

#![expect(clippy::unwrap_used, reason = "test helpers may panic")]

use std::time::UNIX_EPOCH;

use dns::{DynamicUpdate, UpdateSettings};
use sandbox::knot::{Knot, UpdateKey};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const ZONE: &str = "sites.example.net";
const RECORD: &str = "_acme-challenge.sites.example.net";
const SECRET: &[u8] = b"a secret of thirty-two bytes....";

/// Starts a server with two keys, of which one may change the zone. Returns `None` and says so if it can't be had here.
#[expect(clippy::print_stderr, reason = "a test that can't run says so")]
async fn server() -> Option<Knot> {
    if let Some(reason) = Knot::unavailable().await {
        eprintln!("NOT TESTED: no DNS server. {reason}");
        return None;
    }
    let key = |name, algorithm, may_update| UpdateKey { name, algorithm, secret: SECRET, may_update };
    let keys = [
        key("acme", "hmac-sha256", true),
        key("strong", "hmac-sha512", true),
        key("reader", "hmac-sha256", false),
    ];
    Some(Knot::start(ZONE, &keys).await.unwrap())
}

fn settings(knot: &Knot) -> UpdateSettings {
    UpdateSettings {
        server: knot.address(),
        zone: ZONE.to_owned(),
        record: RECORD.to_owned(),
        key_name: "acme".to_owned(),
        algorithm: "hmac-sha256".to_owned(),
        secret: SECRET.to_vec(),
        ttl_seconds: 60,
    }
}

#[expect(clippy::disallowed_methods, reason = "the server compares it with its own clock")]
fn now() -> u64 {
    std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[tokio::test]
async fn a_record_is_replaced_and_removed_and_no_other_changes() {
    let Some(knot) = server().await else { return };
    let update = DynamicUpdate::new(settings(&knot)).unwrap();
    update.replace("one", now()).await.unwrap();
    assert_eq!(knot.texts(RECORD).await.unwrap(), ["one"]);
    // A value that a killed process left is replaced.
    let strong = UpdateSettings {
        key_name: "strong".to_owned(),
        algorithm: "hmac-sha512".to_owned(),
        ..settings(&knot)
    };
    let other = UpdateSettings { record: format!("other.{ZONE}"), ..strong.clone() };
    DynamicUpdate::new(other).unwrap().replace("stays", now()).await.unwrap();
    let strong = DynamicUpdate::new(strong).unwrap();
    strong.replace("two", now()).await.unwrap();
    assert_eq!(knot.texts(RECORD).await.unwrap(), ["two"]);
    update.remove(now()).await.unwrap();
    assert_eq!(knot.texts(RECORD).await.unwrap(), Vec::<String>::new());
    update.remove(now()).await.unwrap();
    assert_eq!(knot.texts(&format!("other.{ZONE}")).await.unwrap(), ["stays"]);
}

#[tokio::test]
async fn each_rejection_says_what_is_wrong_and_changes_nothing() {
    let Some(knot) = server().await else { return };
    let error = async |settings: UpdateSettings, now| {
        let secret = settings.secret.clone();
        let error = DynamicUpdate::new(settings).unwrap().replace("x", now).await.unwrap_err().to_string();
        assert!(!error.contains(str::from_utf8(&secret).unwrap()), "{error}");
        error
    };
    let base = || settings(&knot);
    let wrong_secret = UpdateSettings { secret: b"not the secret".to_vec(), ..base() };
    let unknown_key = UpdateSettings { key_name: "unknown".to_owned(), ..base() };
    let forbidden = UpdateSettings { key_name: "reader".to_owned(), ..base() };
    let other_zone = UpdateSettings {
        zone: "example.org".to_owned(),
        record: "_acme-challenge.example.org".to_owned(),
        ..base()
    };
    let cases = [
        (wrong_secret, now(), "BADSIG"),
        (unknown_key, now(), "BADKEY"),
        (base(), now() - 3_600, "BADTIME"),
        // Knot treats a key without permission like an unknown one.
        (forbidden, now(), "does not let it change the zone"),
        (other_zone, now(), "example.org"),
    ];
    for (settings, now, wanted) in cases {
        let error = error(settings, now).await;
        assert!(error.contains(wanted), "{wanted}: {error}\n{}", knot.log());
    }
    assert_eq!(knot.texts(RECORD).await.unwrap(), Vec::<String>::new());
    let settings = settings(&knot);
    knot.kill().await.unwrap();
    let error = DynamicUpdate::new(settings).unwrap().remove(now()).await.unwrap_err().to_string();
    assert!(error.contains("can't be reached"), "{error}");
}

/// Returns the error of an update after a response without a signature.
async fn error_after(response_code: u8) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let length = client.read_u16().await.unwrap();
        let mut request = vec![0; usize::from(length)];
        client.read_exact(&mut request).await.unwrap();
        // The same id, the bit of a response, the operation, and no records.
        let response = [0, 12, request[0], request[1], 0xa8, response_code, 0, 0, 0, 0, 0, 0, 0, 0];
        client.write_all(&response).await.unwrap();
    });
    let settings = UpdateSettings {
        server,
        zone: ZONE.to_owned(),
        record: RECORD.to_owned(),
        key_name: "acme".to_owned(),
        algorithm: "hmac-sha256".to_owned(),
        secret: SECRET.to_vec(),
        ttl_seconds: 60,
    };
    DynamicUpdate::new(settings).unwrap().replace("x", now()).await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_server_without_the_key_can_not_fake_success_and_its_refusal_is_told() {
    let error = error_after(0).await;
    assert!(error.contains("not signed with the key acme"), "{error}");
    let error = error_after(5).await;
    assert!(error.contains(RECORD) && error.contains("(REFUSED)"), "{error}");
    let error = error_after(9).await;
    assert!(error.contains(ZONE) && error.contains("(NOTAUTH)"), "{error}");
}
