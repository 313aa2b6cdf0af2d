//! Client settings that trust any certificate, and the handshake over a blocking socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};

/// Returns settings for TLS 1.3 with one application protocol.
pub fn config(alpn: &[u8], resumes: bool) -> Arc<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let mut config = builder
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    config.resumption = if resumes { Resumption::in_memory_sessions(8) } else { Resumption::disabled() };
    Arc::new(config)
}

/// Connects and completes the handshake.
pub fn connect(to: SocketAddr, name: &str, config: &Arc<ClientConfig>) -> (TcpStream, ClientConnection) {
    let mut stream = TcpStream::connect(to).expect("the server accepts connections");
    stream.set_nodelay(true).expect("a TCP socket");
    let name = ServerName::try_from(name.to_owned()).expect("a host name");
    let mut tls = ClientConnection::new(Arc::clone(config), name).expect("client settings");
    while tls.is_handshaking() {
        tls.complete_io(&mut stream).expect("a handshake");
    }
    (stream, tls)
}

/// Sends what `tls` has encrypted.
pub fn send(tls: &mut ClientConnection, stream: &mut impl Write) {
    while tls.wants_write() {
        tls.write_tls(stream).expect("the server reads");
    }
}

/// Decrypts bytes that the server sent.
pub fn decrypt(tls: &mut ClientConnection, mut encrypted: &[u8], plain: &mut Vec<u8>) {
    while !encrypted.is_empty() {
        tls.read_tls(&mut encrypted).expect("bytes in memory");
        let state = tls.process_new_packets().expect("valid records");
        let before = plain.len();
        plain.resize(before + state.plaintext_bytes_to_read(), 0);
        tls.reader().read_exact(&mut plain[before..]).expect("decrypted bytes");
    }
}

/// Checks signatures, as every client does, but no chain: that would measure the client.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is offered".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
