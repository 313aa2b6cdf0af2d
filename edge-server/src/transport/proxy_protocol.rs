//! The PROXY protocol, versions 1 and 2: the header with which a proxy names the client of a connection.

use std::io;
use std::net::SocketAddr;

use ppp::{v1, v2};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The first bytes of version 2.
const SIGNATURE_2: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// The first bytes of version 1.
const SIGNATURE_1: &[u8] = b"PROXY ";
/// The longest header of version 1, with its line break.
const MAX_BYTES_1: usize = 107;
/// The longest header of version 2 that is accepted. Addresses need 36 bytes; a proxy may add more about the client.
const MAX_BYTES_2: usize = 4 * 1024;

/// Reads the header, and not a byte of what follows. Returns the client's address, or `peer` if the proxy speaks for itself,
/// as in its health checks.
pub(super) async fn read_client(
    stream: &mut (impl AsyncRead + Unpin),
    peer: SocketAddr,
) -> io::Result<SocketAddr> {
    let mut head = [0; SIGNATURE_2.len()];
    stream.read_exact(&mut head).await?;
    let client = if head == SIGNATURE_2 {
        read_2(stream, head).await?
    } else if head.starts_with(SIGNATURE_1) {
        read_1(stream, head).await?
    } else {
        return Err(invalid("there is no PROXY protocol header"));
    };
    Ok(client.unwrap_or(peer))
}

async fn read_1(stream: &mut (impl AsyncRead + Unpin), head: [u8; 12]) -> io::Result<Option<SocketAddr>> {
    let mut line = head.to_vec();
    // Byte by byte, because the length is not known, and what follows belongs to the client.
    while !line.ends_with(b"\r\n") {
        if line.len() == MAX_BYTES_1 {
            return Err(invalid("the PROXY protocol header has no end"));
        }
        line.push(stream.read_u8().await?);
    }
    let header = v1::Header::try_from(line.as_slice()).map_err(invalid)?;
    Ok(match header.addresses {
        v1::Addresses::Tcp4(of) => Some((of.source_address, of.source_port).into()),
        v1::Addresses::Tcp6(of) => Some((of.source_address, of.source_port).into()),
        v1::Addresses::Unknown => None,
    })
}

async fn read_2(stream: &mut (impl AsyncRead + Unpin), head: [u8; 12]) -> io::Result<Option<SocketAddr>> {
    let mut fixed = [0; 4];
    stream.read_exact(&mut fixed).await?;
    let [_, _, high, low] = fixed;
    let rest = usize::from(u16::from_be_bytes([high, low]));
    let start = head.len() + fixed.len();
    if start + rest > MAX_BYTES_2 {
        return Err(invalid("the PROXY protocol header is too long"));
    }
    let mut bytes = [head.as_slice(), &fixed].concat();
    bytes.resize(start + rest, 0);
    stream.read_exact(&mut bytes[start..]).await?;
    let header = v2::Header::try_from(bytes.as_slice()).map_err(invalid)?;
    Ok(match (header.command, header.addresses) {
        (v2::Command::Proxy, v2::Addresses::IPv4(of)) => Some((of.source_address, of.source_port).into()),
        (v2::Command::Proxy, v2::Addresses::IPv6(of)) => Some((of.source_address, of.source_port).into()),
        _local_or_no_address => None,
    })
}

fn invalid(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: &str = "10.0.0.1:1";

    /// Returns the client's address, and the bytes that are left to be read.
    async fn read(bytes: &[u8]) -> io::Result<(String, usize)> {
        let mut stream = bytes;
        let client = read_client(&mut stream, PEER.parse().unwrap()).await?;
        Ok((client.to_string(), stream.len()))
    }

    fn version_2(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
        let length = u16::try_from(addresses.len()).unwrap().to_be_bytes();
        [&SIGNATURE_2[..], &[0x20 | command, family], &length, addresses, b"GET"].concat()
    }

    #[tokio::test]
    async fn both_versions_name_the_client_and_leave_its_bytes() {
        for (line, client) in [
            ("PROXY TCP4 203.0.113.7 10.0.0.1 4711 443\r\nGET", "203.0.113.7:4711"),
            ("PROXY TCP6 2001:db8::1 2001:db8::2 4711 443\r\nGET", "[2001:db8::1]:4711"),
            ("PROXY UNKNOWN\r\nGET", PEER),
        ] {
            assert_eq!(read(line.as_bytes()).await.unwrap(), (client.to_owned(), 3), "{line}");
        }
        let v4 = [203, 0, 113, 7, 10, 0, 0, 1, 0x12, 0x67, 1, 0xbb];
        assert_eq!(read(&version_2(1, 0x11, &v4)).await.unwrap(), ("203.0.113.7:4711".to_owned(), 3));
        let with_more = [&v4[..], &[4, 0, 2, 7, 7]].concat();
        assert_eq!(read(&version_2(1, 0x11, &with_more)).await.unwrap().0, "203.0.113.7:4711");
        let v6 = [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[1], &[0; 16], &[0x12, 0x67, 1, 0xbb]].concat();
        assert_eq!(read(&version_2(1, 0x21, &v6)).await.unwrap(), ("[2001:db8::1]:4711".to_owned(), 3));
        assert_eq!(read(&version_2(0, 0, &[])).await.unwrap(), (PEER.to_owned(), 3), "a health check");
    }

    #[tokio::test]
    async fn anything_else_is_an_error() {
        let endless = format!("PROXY {}", "x".repeat(200));
        for text in [
            "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "PROXY TCP4 203.0.113.7 10.0.0.1 4711\r\nGET",
            "PROXY TCP4 203.0.113.700 10.0.0.1 4711 443\r\n",
            "PROXY TCP4 2001:db8::1 2001:db8::2 4711 443\r\n",
            "PROXY TCP4 203.0.113.7 10.0.0.1 4711 443",
            "PROXY TCP4",
            &endless,
        ] {
            assert!(read(text.as_bytes()).await.is_err(), "{text}");
        }
        for bytes in
            [version_2(1, 0x11, &[1, 2, 3]), version_2(2, 0x11, &[0; 12]), version_2(1, 0x11, &[0; 9_000])]
        {
            assert!(read(&bytes).await.is_err(), "{:?}", &bytes[..20]);
        }
    }
}
