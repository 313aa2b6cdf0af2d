//! The client's IP address, as the edge reports it to the inner services.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use aide::OperationInput;
use axum::extract::{ConnectInfo, FromRef, FromRequestParts};
use contract::edge;
use http::HeaderMap;
use http::request::Parts;
use subtle::ConstantTimeEq;

use crate::Problem;

/// The secret that the edge and the inner services share.
#[derive(Clone)]
pub struct EdgeTrust(Arc<[u8]>);

/// Minimum length of the token: long enough that a random one can't be guessed.
const TOKEN_BYTES_MIN: usize = 16;

/// The token is missing or too short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "secrets.edge_token must have at least {TOKEN_BYTES_MIN} characters, the same at the edge and at the inner services: \
     without it any client could claim any address and sign any upload; make one with `openssl rand -hex 32`"
)]
pub struct WeakEdgeToken;

impl EdgeTrust {
    /// Creates the trust in this token.
    ///
    /// # Errors
    /// The token is too short.
    pub fn new(token: &str) -> Result<Self, WeakEdgeToken> {
        if token.len() < TOKEN_BYTES_MIN { Err(WeakEdgeToken) } else { Ok(Self(token.as_bytes().into())) }
    }

    /// Returns whether an edge of this installation set these headers. Compares in constant time.
    pub fn trusts(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(edge::TOKEN).map_or(&[][..], |value| value.as_bytes());
        bool::from(shown.ct_eq(&self.0))
    }
}

/// The client's IP address: from the header of a trusted edge, else the address of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientIp(pub IpAddr);

impl ClientIp {
    /// Returns the key of a rate limit: an IPv4 address, or the /64 network of an IPv6 address.
    pub fn network(self) -> String {
        match self.0.to_canonical() {
            IpAddr::V4(v4) => v4.to_string(),
            IpAddr::V6(v6) => format!("{:x?}", &v6.segments()[..4]),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ClientIp
where
    EdgeTrust: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let reported = parts.headers.get(edge::CLIENT_IP).and_then(|value| value.to_str().ok()?.parse().ok());
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
        let trusted = reported.filter(|_| EdgeTrust::from_ref(state).trusts(&parts.headers));
        Ok(Self(trusted.or(peer).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))))
    }
}

impl OperationInput for ClientIp {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ignores_a_forged_address() {
        let request = |token: &str| {
            let builder =
                http::Request::builder().header(edge::CLIENT_IP, "203.0.113.9").header(edge::TOKEN, token);
            let peer: SocketAddr = "127.0.0.1:5".parse().unwrap();
            builder.extension(ConnectInfo(peer)).body(()).unwrap().into_parts().0
        };
        let trust = EdgeTrust::new("a-secret-of-sixteen").unwrap();
        let ip = async |token: &str| {
            ClientIp::from_request_parts(&mut request(token), &trust).await.unwrap().0.to_string()
        };
        assert_eq!(ip("a-secret-of-sixteen").await, "203.0.113.9");
        assert_eq!(ip("a-secret-of-sixteens").await, "127.0.0.1");
        assert_eq!(ip("").await, "127.0.0.1");
    }

    #[test]
    fn rejects_an_empty_or_short_token() {
        for token in ["", "x", "fifteen-letters"] {
            assert!(EdgeTrust::new(token).is_err(), "{token}");
        }
        assert!(EdgeTrust::new("sixteen--letters").is_ok());
    }

    #[test]
    fn counts_the_addresses_of_one_ipv6_network_as_one_client() {
        let network = |ip: &str| ClientIp(ip.parse().unwrap()).network();
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::9"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
        assert_eq!(network("::ffff:203.0.113.9"), network("203.0.113.9"));
        assert_ne!(network("203.0.113.8"), network("203.0.113.9"));
    }
}
