//! Asks a question again without DNSSEC validation (the CD bit), which the resolver's interface does not offer. Recursive
//! resolvers answer SERVFAIL both when signatures are invalid and when no server answers; the CD bit tells one from the other.

use std::net::SocketAddr;
use std::time::Duration;

use hickory_resolver::proto::op::{Message, Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RecordType};
use tokio::net::UdpSocket;
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(1);
/// Responses over UDP without EDNS are not longer.
const MAX_BYTES: usize = 4_096;

/// Returns whether a resolver has a response to a question once it does not validate signatures.
pub(crate) async fn has_response(servers: &[SocketAddr], name: Name, kind: RecordType) -> bool {
    let Some(server) = servers.first() else { return false };
    let asked = timeout(TIMEOUT, ask(*server, name, kind)).await;
    matches!(asked, Ok(Some(ResponseCode::NoError | ResponseCode::NXDomain)))
}

async fn ask(server: SocketAddr, name: Name, kind: RecordType) -> Option<ResponseCode> {
    let local: SocketAddr = if server.is_ipv6() { ([0_u16; 8], 0).into() } else { ([0, 0, 0, 0], 0).into() };
    let socket = UdpSocket::bind(local).await.ok()?;
    // Only datagrams of this server are received.
    socket.connect(server).await.ok()?;
    let mut message = Message::query();
    message.metadata.recursion_desired = true;
    message.metadata.checking_disabled = true;
    message.add_query(Query::query(name, kind));
    socket.send(&message.to_vec().ok()?).await.ok()?;
    let mut buffer = vec![0; MAX_BYTES];
    loop {
        let length = socket.recv(&mut buffer).await.ok()?;
        let response = Message::from_vec(buffer.get(..length)?).ok()?;
        if response.metadata.id == message.metadata.id && response.queries == message.queries {
            return Some(response.metadata.response_code);
        }
    }
}
