//! Changes one TXT record on an authoritative server by DNS UPDATE (RFC 2136), signed with a shared key (TSIG, RFC 8945).
//!
//! Messages go over TCP, so that no response is spoofed or truncated. A response counts only if it is signed with the same
//! key; a rejection is believed without.

use std::time::Duration;

use hickory_proto::op::update_message::delete_rrset;
use hickory_proto::op::{Message, Query, ResponseCode, UpdateMessage as _};
use hickory_proto::rr::rdata::TXT;
use hickory_proto::rr::rdata::tsig::{TsigAlgorithm, TsigError};
use hickory_proto::rr::{Name, RData, Record, RecordType, TSigVerifier, TSigner};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{interval, timeout};

/// Timeout of one message and its response.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long the server may take to answer with a new value, and how often it is asked.
const VISIBLE_TIMEOUT: Duration = Duration::from_secs(30);
const VISIBLE_INTERVAL: Duration = Duration::from_millis(250);
/// How far the clocks of this machine and of the server may differ.
const MAX_CLOCK_DIFFERENCE_SECONDS: u16 = 300;

/// Where and how a record is changed.
#[derive(Debug, Clone)]
pub struct UpdateSettings {
    /// The zone's primary server, `host:port`.
    pub server: String,
    /// The zone that contains the record.
    pub zone: String,
    /// The record's name.
    pub record: String,
    /// The name of the key, as the server knows it.
    pub key_name: String,
    /// `hmac-sha256`, `hmac-sha384` or `hmac-sha512`.
    pub algorithm: String,
    /// The shared secret.
    pub secret: Vec<u8>,
    /// How long resolvers may store the record, in seconds.
    pub ttl_seconds: u32,
}

/// A setting can't be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUpdate {
    /// The server is not `host:port`.
    #[error("server: {0:?} is not a host with a port, such as ns1.example.net:53")]
    Server(String),
    /// A name is no domain name.
    #[error("{key}: {value:?} is no domain name")]
    Name {
        /// The setting.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// The record is outside the zone.
    #[error("zone: {record} is not in the zone {zone}")]
    Zone {
        /// The record's name.
        record: String,
        /// The zone's name.
        zone: String,
    },
    /// The algorithm is unknown or too weak.
    #[error("tsig_algorithm: {0:?} is none of hmac-sha256, hmac-sha384 and hmac-sha512")]
    Algorithm(String),
    /// The secret is empty.
    #[error("tsig_secret_file: the secret is empty")]
    Secret,
}

/// A record was not changed.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// There is no connection to the server, or it broke.
    #[error("the DNS server {server} can't be reached: {error}")]
    Unreachable {
        /// The server.
        server: String,
        /// Why.
        error: std::io::Error,
    },
    /// The server did not answer in time.
    #[error("the DNS server {0} did not answer within {TIMEOUT:?}")]
    Timeout(String),
    /// The server rejected the change.
    #[error("the DNS server {server} {reason}")]
    Rejected {
        /// The server.
        server: String,
        /// Why, with the code of the response.
        reason: String,
    },
    /// The server does not answer with the new value.
    #[error("the DNS server {server} accepted the record {record} but does not answer with it: {reason}")]
    NotVisible {
        /// The server.
        server: String,
        /// The record's name.
        record: String,
        /// What it answered last.
        reason: String,
    },
}

/// Changes one TXT record. The secret is never shown.
#[derive(Clone)]
pub struct DynamicUpdate {
    server: String,
    zone: Name,
    record: Name,
    ttl_seconds: u32,
    signer: TSigner,
}

impl DynamicUpdate {
    /// Reads the settings. The server is not asked yet.
    ///
    /// # Errors
    /// A setting is invalid.
    pub fn new(settings: UpdateSettings) -> Result<Self, InvalidUpdate> {
        let UpdateSettings { server, zone, record, key_name, algorithm, secret, ttl_seconds } = settings;
        let is_server = server
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0));
        if !is_server {
            return Err(InvalidUpdate::Server(server));
        }
        let zone_name = name("zone", &zone)?;
        let record_name = name("record", &record)?;
        if !zone_name.zone_of(&record_name) {
            return Err(InvalidUpdate::Zone { record, zone });
        }
        if secret.is_empty() {
            return Err(InvalidUpdate::Secret);
        }
        let key_name = name("tsig_key_name", &key_name)?;
        let kind = match algorithm.as_str() {
            "hmac-sha256" => TsigAlgorithm::HmacSha256,
            "hmac-sha384" => TsigAlgorithm::HmacSha384,
            "hmac-sha512" => TsigAlgorithm::HmacSha512,
            _ => return Err(InvalidUpdate::Algorithm(algorithm)),
        };
        let signer = TSigner::new(secret, kind, key_name, MAX_CLOCK_DIFFERENCE_SECONDS)
            .map_err(|_| InvalidUpdate::Algorithm(algorithm))?;
        Ok(Self { server, zone: zone_name, record: record_name, ttl_seconds, signer })
    }

    /// Replaces the record's values by this one and waits until the server answers with it. `now` is in Unix seconds.
    ///
    /// # Errors
    /// The record was not changed, or is not visible.
    pub async fn replace(&self, value: &str, now: u64) -> Result<(), UpdateError> {
        let data = RData::TXT(TXT::new(vec![value.to_owned()]));
        let mut message = self.deletion();
        message.add_update(Record::from_rdata(self.record.clone(), self.ttl_seconds, data));
        self.send(message, now).await?;
        self.wait_until_visible(value).await
    }

    /// Removes all values of the record. `now` is in Unix seconds.
    ///
    /// # Errors
    /// The record was not changed.
    pub async fn remove(&self, now: u64) -> Result<(), UpdateError> {
        self.send(self.deletion(), now).await
    }

    /// Returns an update that deletes all TXT values of the record.
    fn deletion(&self) -> Message {
        let record = Record::update0(self.record.clone(), 0, RecordType::TXT).into_record_of_rdata();
        delete_rrset(record, self.zone.clone(), false)
    }

    async fn send(&self, mut message: Message, now: u64) -> Result<(), UpdateError> {
        let signed = message.finalize(&self.signer, now);
        let (Ok(Some(verifier)), Ok(bytes)) = (signed, message.to_vec()) else {
            return Err(self.rejected("was not asked: the update can't be signed".to_owned()));
        };
        let bytes = self.exchange(&bytes).await?;
        let response = self.read(&bytes, &message)?;
        self.accepted(&response, &bytes, verifier)
    }

    /// Returns whether the server made the change.
    fn accepted(
        &self,
        response: &Message,
        bytes: &[u8],
        mut verifier: TSigVerifier,
    ) -> Result<(), UpdateError> {
        let key = self.signer.signer_name();
        let key_error = response.signature().and_then(|signature| signature.data.error);
        let reason = match (response.metadata.response_code, key_error) {
            (ResponseCode::NoError, None) if verifier.verify(bytes).is_ok() => return Ok(()),
            (ResponseCode::NoError, _) => format!("sent a response that is not signed with the key {key}"),
            (_, Some(TsigError::BadKey)) => {
                format!("does not know the TSIG key {key}, or does not let it change the zone (BADKEY)")
            }
            (_, Some(TsigError::BadSig)) => {
                format!("has another secret or algorithm for the TSIG key {key} (BADSIG)")
            }
            (_, Some(TsigError::BadTime)) => {
                format!(
                    "has a clock that differs from ours by over {MAX_CLOCK_DIFFERENCE_SECONDS} s (BADTIME)"
                )
            }
            (ResponseCode::NotAuth, _) => {
                format!(
                    "is not the primary server of the zone {} or refuses the key {key} (NOTAUTH)",
                    self.zone
                )
            }
            (ResponseCode::Refused, _) => {
                format!("does not let the TSIG key {key} change {} (REFUSED)", self.record)
            }
            (code, _) => format!("did not change {}: {code}", self.record),
        };
        Err(self.rejected(reason))
    }

    /// Polls the server itself: its secondaries get the zone from it.
    async fn wait_until_visible(&self, value: &str) -> Result<(), UpdateError> {
        let mut last = String::from("no response");
        let polled = timeout(VISIBLE_TIMEOUT, async {
            let mut ticks = interval(VISIBLE_INTERVAL);
            loop {
                ticks.tick().await;
                match self.texts().await {
                    Ok(texts) if texts.iter().any(|text| text == value.as_bytes()) => return,
                    Ok(texts) => last = format!("it answers with {} other values", texts.len()),
                    Err(error) => last = error.to_string(),
                }
            }
        });
        let visible = polled.await;
        visible.map_err(|_elapsed| UpdateError::NotVisible {
            server: self.server.clone(),
            record: self.record.to_string(),
            reason: last,
        })
    }

    /// Returns the record's values as the server answers them.
    async fn texts(&self) -> Result<Vec<Vec<u8>>, UpdateError> {
        let mut question = Message::query();
        question.add_query(Query::query(self.record.clone(), RecordType::TXT));
        let Ok(bytes) = question.to_vec() else { return Ok(vec![]) };
        let bytes = self.exchange(&bytes).await?;
        let response = self.read(&bytes, &question)?;
        match response.metadata.response_code {
            ResponseCode::NoError | ResponseCode::NXDomain => {}
            code => return Err(self.rejected(format!("answers a query for {} with {code}", self.record))),
        }
        let text = |record: &Record| match &record.data {
            RData::TXT(text) => Some(text.txt_data.concat()),
            _ => None,
        };
        Ok(response.answers.iter().filter_map(text).collect())
    }

    fn read(&self, bytes: &[u8], sent: &Message) -> Result<Message, UpdateError> {
        let response = Message::from_vec(bytes).ok();
        let response = response.filter(|response| response.metadata.id == sent.metadata.id);
        response.ok_or_else(|| self.rejected("sent bytes that are no response".to_owned()))
    }

    fn rejected(&self, reason: String) -> UpdateError {
        UpdateError::Rejected { server: self.server.clone(), reason }
    }

    /// Sends one message over TCP, behind its length, and returns the response.
    async fn exchange(&self, message: &[u8]) -> Result<Vec<u8>, UpdateError> {
        let exchanged = timeout(TIMEOUT, async {
            let mut connection = TcpStream::connect(&self.server).await?;
            let length = u16::try_from(message.len()).map_err(std::io::Error::other)?;
            let framed = [&length.to_be_bytes(), message].concat();
            connection.write_all(&framed).await?;
            let length = connection.read_u16().await?;
            let mut response = vec![0; usize::from(length)];
            connection.read_exact(&mut response).await?;
            Ok(response)
        });
        match exchanged.await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(UpdateError::Unreachable { server: self.server.clone(), error }),
            Err(_elapsed) => Err(UpdateError::Timeout(self.server.clone())),
        }
    }
}

fn name(key: &'static str, value: &str) -> Result<Name, InvalidUpdate> {
    let invalid = || InvalidUpdate::Name { key, value: value.to_owned() };
    let mut name = Name::from_ascii(value).map_err(|_| invalid())?;
    if value.is_empty() || name.is_root() {
        return Err(invalid());
    }
    name.set_fqdn(true);
    Ok(name)
}
