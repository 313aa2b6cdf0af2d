//! A recursive DNS server for tests, over UDP and TCP. It answers from the records that a test sets, or misbehaves.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CAA, CNAME, TXT};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;

/// Aliases that are followed for one question, so that a loop ends.
const MAX_ALIASES: usize = 20;
/// Longer responses over UDP are truncated.
const UDP_BYTES: usize = 1_232;
const TTL: u32 = 60;

/// A DNS server on loopback. Dropping it stops it.
#[derive(Debug)]
pub struct DnsServer {
    address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
    _tasks: JoinSet<()>,
}

/// How the server answers questions about a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsBehavior {
    /// Not at all.
    Silent,
    /// With SERVFAIL.
    ServerFailure,
    /// With SERVFAIL, unless the question asks for no validation (CD).
    Bogus,
    /// With bytes that are no message.
    Garbage,
    /// With the response to another question.
    OtherQuestion,
}

#[derive(Debug, Default)]
struct Zone {
    records: HashMap<String, Vec<RData>>,
    behaviors: HashMap<String, DnsBehavior>,
    /// How many further questions with validation fail.
    failures: HashMap<String, usize>,
    questions: usize,
}

impl Zone {
    /// Returns the behavior of a name, or of the names below one of its parents.
    fn behavior(&self, name: &str) -> Option<DnsBehavior> {
        let parents = name.match_indices('.').map(|(at, _)| format!("*{}", &name[at..]));
        let mut names = std::iter::once(name.to_owned()).chain(parents);
        names.find_map(|name| self.behaviors.get(&name).copied())
    }
}

impl DnsServer {
    /// Starts a server without records.
    pub async fn start() -> Self {
        let (tcp, udp) = bind().await;
        let address = udp.local_addr().expect("a bound socket has an address");
        let zone: Arc<Mutex<Zone>> = Arc::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(serve_udp(udp, Arc::clone(&zone)));
        tasks.spawn(serve_tcp(tcp, Arc::clone(&zone)));
        Self { address, zone, _tasks: tasks }
    }

    /// Returns `host:port`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Replaces the records of a name. Each is a type and a value, such as `A 192.0.2.1`, `CNAME www.example.com` or
    /// `TXT text`; `CAA authority` is an `issue` record.
    pub fn set(&self, name: &str, records: &[&str]) {
        let records = records.iter().map(|record| parse(record)).collect();
        self.zone().records.insert(name.to_owned(), records);
    }

    /// Replaces the records of a name by TXT records of any bytes.
    pub fn set_texts(&self, name: &str, texts: &[&[u8]]) {
        let text = |bytes: &&[u8]| RData::TXT(TXT::from_bytes(bytes.chunks(255).collect()));
        self.zone().records.insert(name.to_owned(), texts.iter().map(text).collect());
    }

    /// Removes all records of a name.
    pub fn remove(&self, name: &str) {
        self.zone().records.remove(name);
    }

    /// Makes questions about a name answered in another way; `None` answers them again.
    pub fn misbehave(&self, name: &str, behavior: Option<DnsBehavior>) {
        let mut zone = self.zone();
        match behavior {
            Some(behavior) => zone.behaviors.insert(name.to_owned(), behavior),
            None => zone.behaviors.remove(name),
        };
    }

    /// Makes the next questions about a name fail with SERVFAIL, unless they ask for no validation (CD).
    pub fn fail_next(&self, name: &str, questions: usize) {
        self.zone().failures.insert(name.to_owned(), questions);
    }

    /// Returns how many questions about a name still fail, of those of [`Self::fail_next`].
    pub fn failures_left(&self, name: &str) -> usize {
        self.zone().failures.get(name).copied().unwrap_or_default()
    }

    /// Makes questions about all names below one answered in another way.
    pub fn misbehave_below(&self, name: &str, behavior: DnsBehavior) {
        self.zone().behaviors.insert(format!("*.{name}"), behavior);
    }

    /// Returns how many questions were received.
    pub fn questions(&self) -> usize {
        self.zone().questions
    }

    fn zone(&self) -> MutexGuard<'_, Zone> {
        lock(&self.zone)
    }
}

fn lock(zone: &Mutex<Zone>) -> MutexGuard<'_, Zone> {
    zone.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Binds the same free port for both protocols.
async fn bind() -> (TcpListener, UdpSocket) {
    loop {
        let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = tcp.local_addr().expect("a bound socket has an address");
        if let Ok(udp) = UdpSocket::bind(address).await {
            return (tcp, udp);
        }
    }
}

fn parse(record: &str) -> RData {
    let (kind, value) = record.split_once(' ').expect("a type and a value");
    let name = || Name::from_ascii(format!("{value}.")).expect("a name");
    match kind {
        "A" => RData::A(A(value.parse().expect("an IPv4 address"))),
        "AAAA" => RData::AAAA(AAAA(value.parse().expect("an IPv6 address"))),
        "CNAME" => RData::CNAME(CNAME(name())),
        "TXT" => RData::TXT(TXT::new(vec![value.to_owned()])),
        // The value is a name without a dot at its end.
        "CAA" => {
            let authority = Name::from_ascii(value).expect("a name");
            RData::CAA(CAA::new_issue(false, Some(authority), vec![]))
        }
        other => panic!("unknown type {other}"),
    }
}

async fn serve_udp(socket: UdpSocket, zone: Arc<Mutex<Zone>>) {
    let mut buffer = vec![0; 4_096];
    while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
        let Some(response) = respond(&buffer[..length], &zone, UDP_BYTES) else { continue };
        // A client that has gone away is no failure.
        let _sent = socket.send_to(&response, client).await;
    }
}

async fn serve_tcp(listener: TcpListener, zone: Arc<Mutex<Zone>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve_connection(stream, Arc::clone(&zone)));
    }
}

async fn serve_connection(mut stream: TcpStream, zone: Arc<Mutex<Zone>>) {
    while let Ok(length) = stream.read_u16().await {
        let mut question = vec![0; length.into()];
        if stream.read_exact(&mut question).await.is_err() {
            return;
        }
        let Some(response) = respond(&question, &zone, u16::MAX.into()) else { continue };
        let length = u16::try_from(response.len()).unwrap_or(u16::MAX);
        if stream.write_u16(length).await.is_err() || stream.write_all(&response).await.is_err() {
            return;
        }
    }
}

/// Returns the response, or `None` to stay silent.
fn respond(question: &[u8], zone: &Mutex<Zone>, max_bytes: usize) -> Option<Vec<u8>> {
    let request = Message::from_vec(question).ok()?;
    let query = request.queries.first()?.clone();
    let name = query.name().to_ascii().trim_end_matches('.').to_ascii_lowercase();
    let mut zone = lock(zone);
    zone.questions += 1;
    let mut response = Message::response(request.metadata.id, request.metadata.op_code);
    response.metadata.recursion_desired = request.metadata.recursion_desired;
    response.metadata.recursion_available = true;
    let behavior = zone.behavior(&name);
    match behavior {
        Some(DnsBehavior::Silent) => return None,
        Some(DnsBehavior::Garbage) => return Some(vec![0xff; 40]),
        Some(DnsBehavior::OtherQuestion) => {
            let mut other = query.clone();
            other.set_name(Name::from_ascii("other.test.").ok()?);
            response.add_query(other);
            return response.to_vec().ok();
        }
        _ => {}
    }
    response.add_query(query.clone());
    let fails = match behavior {
        Some(DnsBehavior::ServerFailure) => true,
        Some(DnsBehavior::Bogus) => !request.metadata.checking_disabled,
        _ => false,
    };
    let left = zone.failures.get_mut(&name).filter(|left| **left > 0 && !request.metadata.checking_disabled);
    let fails_once = left.map(|left| *left -= 1).is_some();
    if fails || fails_once {
        response.metadata.response_code = ResponseCode::ServFail;
        return response.to_vec().ok();
    }
    let answers = answers(&zone, &name, query.query_type());
    if answers.is_empty() && !zone.records.contains_key(&name) {
        response.metadata.response_code = ResponseCode::NXDomain;
    }
    response.add_answers(answers);
    let bytes = response.to_vec().ok()?;
    if bytes.len() <= max_bytes {
        return Some(bytes);
    }
    response.answers.clear();
    response.metadata.truncation = true;
    response.to_vec().ok()
}

/// Returns the records of a type, with the aliases that lead to them.
fn answers(zone: &Zone, name: &str, kind: RecordType) -> Vec<Record> {
    let mut answers = vec![];
    let mut name = name.to_owned();
    for _ in 0..MAX_ALIASES {
        let records = zone.records.get(&name).map(Vec::as_slice).unwrap_or_default();
        let Ok(owner) = Name::from_ascii(format!("{name}.")) else { return answers };
        let record = |data: &RData| Record::from_rdata(owner.clone(), TTL, data.clone());
        let matching: Vec<_> = records.iter().filter(|data| data.record_type() == kind).map(record).collect();
        let alias = records.iter().find_map(|data| match data {
            RData::CNAME(alias) if matching.is_empty() => Some(alias.0.clone()),
            _ => None,
        });
        answers.extend(matching);
        let Some(alias) = alias else { return answers };
        name = alias.to_ascii().trim_end_matches('.').to_owned();
        answers.push(Record::from_rdata(owner, TTL, RData::CNAME(CNAME(alias))));
    }
    answers
}
