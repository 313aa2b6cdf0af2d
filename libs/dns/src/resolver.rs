//! The client of the configured resolvers.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use domain::domains::Failure;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, Record, RecordType};

use crate::unvalidated;

/// Timeout of one attempt of a query. There are two.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(1_500);
/// How often a failed question is asked again, without validation too, before its signatures count as invalid.
const CONFIRMATIONS: usize = 2;
/// Pause between two of them. Resolvers cache a failure for a second or longer (RFC 9520, 3.2).
const FAILURE_PAUSE: Duration = Duration::from_millis(1_100);
/// The port of resolvers of the system.
const DNS_PORT: u16 = 53;

/// Looks up records through the configured resolvers, or the system's.
pub struct Resolver {
    client: TokioResolver,
    servers: Vec<SocketAddr>,
}

/// A resolver is not an address, or the system has none.
#[derive(Debug, thiserror::Error)]
pub enum InvalidResolver {
    /// An entry is not `host:port`.
    #[error("{0:?} is not an address with a port, such as 192.0.2.53:53")]
    Address(String),
    /// The system's resolvers can't be used.
    #[error("the system's resolvers can't be read; set some in domains.resolvers: {0}")]
    System(#[from] NetError),
}

impl Resolver {
    /// Creates a client of these resolvers (`host:port`), or of the system's if there are none.
    ///
    /// # Errors
    /// An entry is invalid, or the system's resolvers can't be read.
    pub fn new(resolvers: &[String]) -> Result<Self, InvalidResolver> {
        let read = |text: &String| text.parse().map_err(|_| InvalidResolver::Address(text.clone()));
        let mut servers: Vec<SocketAddr> = resolvers.iter().map(read).collect::<Result<_, _>>()?;
        if servers.is_empty() {
            let (system, _) = hickory_resolver::system_conf::read_system_conf()?;
            servers = system.name_servers().iter().map(|server| (server.ip, DNS_PORT).into()).collect();
            servers.dedup();
        }
        let config = ResolverConfig::from_parts(None, vec![], servers.iter().map(name_server).collect());
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        *builder.options_mut() = options();
        Ok(Self { client: builder.build()?, servers })
    }

    /// Returns the answer section of a lookup, with the aliases that led to it. No records are an empty list. Signatures count
    /// as invalid if the name has a response without validation, and none with it, twice in a row: a SERVFAIL may pass.
    pub(crate) async fn lookup(&self, name: &str, kind: RecordType) -> Result<Vec<Record>, Failure> {
        // A name that is too long for DNS has no records.
        let Ok(name) = Name::from_ascii(format!("{name}.")) else { return Ok(vec![]) };
        for attempt in 0..=CONFIRMATIONS {
            match self.ask(&name, kind).await {
                Ok(records) => return Ok(records),
                Err(NetError::Dns(_)) => {}
                Err(_) => return Err(Failure::Timeout),
            }
            // The first failure may pass: it is asked about again before it means anything.
            if attempt > 0 && !unvalidated::has_response(&self.servers, name.clone(), kind).await {
                return Err(Failure::Timeout);
            }
            if attempt < CONFIRMATIONS {
                #[expect(clippy::disallowed_methods, reason = "a passing failure takes time to pass")]
                tokio::time::sleep(FAILURE_PAUSE).await;
            }
        }
        Err(Failure::Bogus)
    }

    async fn ask(&self, name: &Name, kind: RecordType) -> Result<Vec<Record>, NetError> {
        match self.client.lookup(name.clone(), kind).await {
            Ok(lookup) => Ok(lookup.answers().to_vec()),
            Err(NetError::Dns(DnsError::NoRecordsFound(none)))
                if matches!(none.response_code, ResponseCode::NoError | ResponseCode::NXDomain) =>
            {
                Ok(vec![])
            }
            Err(error) => Err(error),
        }
    }
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let at_port = |mut connection: ConnectionConfig| {
        connection.port = address.port();
        connection
    };
    let ip: IpAddr = address.ip();
    NameServerConfig::new(ip, true, vec![at_port(ConnectionConfig::udp()), at_port(ConnectionConfig::tcp())])
}

fn options() -> ResolverOpts {
    let mut options = ResolverOpts::default();
    options.timeout = ATTEMPT_TIMEOUT;
    options.attempts = 1;
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    options.preserve_intermediates = true;
    options.case_randomization = false;
    options
}
