//! Lookups against a local DNS server, an honest one and hostile ones.

#![expect(clippy::unwrap_used, reason = "test helpers may panic")]

use std::time::{Duration, Instant};

use dns::{CHECK_TIMEOUT, Resolver};
use domain::domains::{ErrorCode, Failure, Found, Target, compare};
use sandbox::test::{DnsBehavior, DnsServer};

const HOST: &str = "www.example.com";
const PROOF: &str = "_webruntime.www.example.com";

struct Checked {
    found: Found,
    problem: Option<ErrorCode>,
    certificate_problem: Option<ErrorCode>,
}

async fn check(server: &DnsServer, host: &str) -> Checked {
    let resolver = Resolver::new(&[server.address()]).unwrap();
    let addresses = ["203.0.113.7".parse().unwrap()];
    let caa_identities = ["ca.test".to_owned()];
    let target = Target {
        cname: "edge.test",
        sites_domain: "sites.test",
        addresses: &addresses,
        caa_identities: &caa_identities,
    };
    let started = Instant::now();
    let found = resolver.find(host, &target).await;
    assert!(started.elapsed() < CHECK_TIMEOUT + Duration::from_secs(2), "a check is bounded in time");
    let comparison = compare(host, "proof", &target, Some(&found));
    let (problem, certificate_problem) = (comparison.problem, comparison.certificate_problem);
    Checked { found, problem, certificate_problem }
}

/// Returns a server with a domain. All of its records stand.
async fn ready() -> DnsServer {
    let server = DnsServer::start().await;
    server.set(PROOF, &["TXT proof"]);
    server.set(HOST, &["CNAME edge.test"]);
    server.set("edge.test", &["A 203.0.113.7"]);
    server
}

#[tokio::test]
async fn finds_each_state_of_the_records() {
    use ErrorCode::*;
    let server = ready().await;
    assert_eq!(check(&server, HOST).await.problem, None);
    server.set(PROOF, &["TXT other"]);
    assert_eq!(check(&server, HOST).await.problem, Some(TxtWrong));
    server.remove(PROOF);
    assert_eq!(check(&server, HOST).await.problem, Some(TxtMissing));
    server.set(PROOF, &["TXT other", "TXT proof"]);
    server.set(HOST, &["CNAME elsewhere.test"]);
    let checked = check(&server, HOST).await;
    assert_eq!(
        (checked.problem, checked.found.aliases),
        (Some(CnameWrong), vec!["elsewhere.test".to_owned()])
    );
    server.set(HOST, &["A 198.51.100.1"]);
    assert_eq!(check(&server, HOST).await.problem, Some(AddressWrong));
    server.remove(HOST);
    assert_eq!(check(&server, HOST).await.problem, Some(NoSuchName));
}

#[tokio::test]
async fn a_leftover_aaaa_record_is_address_extra() {
    let server = ready().await;
    server.set(HOST, &["A 203.0.113.7"]);
    assert_eq!(check(&server, HOST).await.problem, None);
    server.set(HOST, &["A 203.0.113.7", "AAAA 2001:db8::1"]);
    assert_eq!(check(&server, HOST).await.problem, Some(ErrorCode::AddressExtra));
}

#[tokio::test]
async fn caa_is_walked_up_the_tree_and_through_the_alias() {
    let server = ready().await;
    server.set("com", &["CAA ca.test"]);
    assert_eq!(check(&server, HOST).await.certificate_problem, None);
    server.set("example.com", &["CAA other.test"]);
    assert_eq!(check(&server, HOST).await.certificate_problem, Some(ErrorCode::CaaForbids));
    // The records of the alias are nearer than those of the parent.
    server.set("edge.test", &["A 203.0.113.7", "CAA ca.test"]);
    assert_eq!(check(&server, HOST).await.certificate_problem, None);
    server.set("example.com", &[]);
    server.set("edge.test", &["A 203.0.113.7", "CAA other.test"]);
    let checked = check(&server, HOST).await;
    assert_eq!((checked.problem, checked.certificate_problem), (None, Some(ErrorCode::CaaForbids)));
}

#[tokio::test]
async fn silence_and_failures_are_timeouts_and_no_missing_records() {
    for behavior in
        [DnsBehavior::Silent, DnsBehavior::ServerFailure, DnsBehavior::Garbage, DnsBehavior::OtherQuestion]
    {
        let server = ready().await;
        server.misbehave(PROOF, Some(behavior));
        let checked = check(&server, HOST).await;
        assert_eq!(checked.problem, Some(ErrorCode::DnsTimeout), "{behavior:?}");
        assert_eq!(checked.found.txt_failure, Some(Failure::Timeout), "{behavior:?}");
        assert_eq!(checked.found.aliases, ["edge.test"], "one failed lookup spoils no other");
    }
}

#[tokio::test]
async fn invalid_signatures_are_told_from_a_failing_server() {
    let server = ready().await;
    server.misbehave(PROOF, Some(DnsBehavior::Bogus));
    assert_eq!(check(&server, HOST).await.problem, Some(ErrorCode::DnssecBogus));
}

#[tokio::test]
async fn a_passing_servfail_is_not_bogus() {
    for failures in 1..=2 {
        let server = ready().await;
        server.fail_next(PROOF, failures);
        let checked = check(&server, HOST).await;
        assert_eq!((checked.problem, checked.found.txt_failure), (None, None), "{failures}");
        assert_eq!(server.failures_left(PROOF), 0);
    }
}

#[tokio::test]
async fn a_loop_of_aliases_ends() {
    let server = ready().await;
    server.set(HOST, &["CNAME a.test"]);
    server.set("a.test", &["CNAME b.test"]);
    server.set("b.test", &["CNAME a.test"]);
    let checked = check(&server, HOST).await;
    assert_eq!((checked.problem, checked.found.addresses.len()), (Some(ErrorCode::CnameWrong), 0));
    assert!(server.questions() < 200, "{} questions", server.questions());
}

#[tokio::test]
async fn huge_and_hostile_texts_are_bounded_and_cleaned() {
    let server = ready().await;
    let long = vec![b'x'; 10_000];
    let hostile = b"\0\x1b[31m\xff<script>\xe2\x80\xae";
    let mut texts: Vec<&[u8]> = vec![hostile, b"proof", &long];
    let many: Vec<_> = (0..200).map(|number| format!("text {number}").into_bytes()).collect();
    texts.extend(many.iter().map(Vec::as_slice));
    // Too large for UDP: the truncated response is repeated over TCP.
    server.set_texts(PROOF, &texts);
    let checked = check(&server, HOST).await;
    assert_eq!(checked.problem, None);
    assert_eq!(checked.found.txt.len(), 20);
    assert!(checked.found.txt.iter().all(|text| text.chars().count() <= 255));
    assert!(!checked.found.txt.iter().any(|text| text.contains(['\0', '\x1b', '\u{202e}'])));
    assert!(checked.found.txt[0].contains("<script>"), "{}", checked.found.txt[0]);
}

#[tokio::test]
async fn without_configured_addresses_those_of_the_target_count() {
    let server = ready().await;
    server.set("example.com", &["A 203.0.113.7"]);
    server.set("_webruntime.example.com", &["TXT proof"]);
    let resolver = Resolver::new(&[server.address()]).expect("a resolver");
    let target = Target { cname: "edge.test", sites_domain: "", addresses: &[], caa_identities: &[] };
    let found = resolver.find("example.com", &target).await;
    assert_eq!(compare("example.com", "proof", &target, Some(&found)).problem, None);
    server.set("edge.test", &["A 203.0.113.8"]);
    let found = resolver.find("example.com", &target).await;
    assert_eq!(compare("example.com", "proof", &target, Some(&found)).problem, Some(ErrorCode::AddressWrong));
}

#[test]
fn a_resolver_without_a_port_is_refused() {
    for wrong in ["192.0.2.53", "dns.example:53", ""] {
        assert!(Resolver::new(&[wrong.to_owned()]).is_err(), "{wrong}");
    }
}
