//! TLS on a non-blocking socket, with rustls: handshake, records, certificates.
//!
//! Owns no events: every call does what it can and says whether more is to come. The same
//! session cache serves all connections of a thread, as a browser's would.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use crate::error::LoadError;
use crate::outcome::ErrorKind;
use crate::plan::TlsSpec;
use crate::socket::{SocketProgress, TcpSocket};

/// Where Debian, Ubuntu, Fedora (by link) and Alpine keep the system's roots.
const SYSTEM_ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

/// HTTP/2 in ALPN (RFC 9113 §3.1).
const HTTP2: &[u8] = b"h2";

#[derive(Debug)]
pub(crate) struct TlsSetup {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsSetup {
    pub(crate) fn new(spec: &TlsSpec, is_http2: bool) -> Result<Self, LoadError> {
        let refuse = |why: String| LoadError::plan("TLS", why);
        let name = ServerName::try_from(spec.server_name.clone())
            .map_err(|_| refuse(format!("`{}` is not a host name", spec.server_name)))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|e| refuse(e.to_string()))?;
        let mut config = if spec.insecure {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
                .with_no_client_auth()
        } else {
            let path = spec.roots.as_deref().unwrap_or(Path::new(SYSTEM_ROOTS));
            builder
                .with_root_certificates(read_roots(path).map_err(refuse)?)
                .with_no_client_auth()
        };
        let protocol = if is_http2 { HTTP2 } else { b"http/1.1" };
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(Self {
            config: Arc::new(config),
            name,
        })
    }

    pub(crate) fn begin_session(&self) -> Result<ClientConnection, LoadError> {
        let session = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        session.map_err(|error| LoadError::plan("TLS", error.to_string()))
    }
}

fn read_roots(path: &Path) -> Result<RootCertStore, String> {
    let failed = |e: rustls::pki_types::pem::Error| {
        format!(
            "{}: {e}; give a PEM file with --cacert, or --insecure",
            path.display()
        )
    };
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(failed)? {
        // The system's store may hold roots that rustls does not accept; the others count.
        let _ = store.add(certificate.map_err(failed)?);
    }
    if store.is_empty() {
        Err(format!("{}: it holds no certificate", path.display()))
    } else {
        Ok(store)
    }
}

#[derive(Debug)]
pub(crate) struct TlsSocket {
    socket: TcpSocket,
    session: ClientConnection,
    drained: bool,
}

impl TlsSocket {
    pub(crate) fn new(socket: TcpSocket, setup: &TlsSetup) -> Result<Self, ErrorKind> {
        let session = setup.begin_session().map_err(|_| ErrorKind::Tls)?;
        Ok(Self {
            socket,
            session,
            drained: false,
        })
    }

    pub(crate) fn is_http2(&self) -> bool {
        self.session.alpn_protocol() == Some(HTTP2)
    }

    pub(crate) fn handshake(&mut self) -> Result<bool, ErrorKind> {
        self.socket.connect_result()?;
        self.flush_records()?;
        while self.session.is_handshaking() {
            match self.read_records()? {
                SocketProgress::Bytes(_) => self.flush_records()?,
                SocketProgress::Later => return Ok(false),
                SocketProgress::End => return Err(ErrorKind::Tls),
            }
        }
        Ok(true)
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> Result<SocketProgress, ErrorKind> {
        // rustls takes at most its buffer limit, and nothing while that is full.
        let taken = self
            .session
            .writer()
            .write(bytes)
            .map_err(|_| ErrorKind::Tls)?;
        self.flush_records()?;
        Ok(match taken {
            0 => SocketProgress::Later,
            n => SocketProgress::Bytes(n),
        })
    }

    pub(crate) fn flush_records(&mut self) -> Result<(), ErrorKind> {
        while self.session.wants_write() {
            let mut raw = RustlsTransport::new(&self.socket);
            match self.session.write_tls(&mut raw) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(raw.error.unwrap_or(ErrorKind::Io)),
            }
        }
        Ok(())
    }

    pub(crate) fn has_unflushed(&self) -> bool {
        self.session.wants_write()
    }

    pub(crate) fn receive_bytes(&mut self, buffer: &mut [u8]) -> Result<SocketProgress, ErrorKind> {
        loop {
            match self.session.reader().read(buffer) {
                Ok(0) => return Ok(SocketProgress::End),
                Ok(n) => return Ok(SocketProgress::Bytes(n)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // The peer closed without saying so in TLS: HTTP's own framing decides.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                    return Ok(SocketProgress::End);
                }
                Err(_) => return Err(ErrorKind::Tls),
            }
            match self.read_records()? {
                SocketProgress::Later => return Ok(SocketProgress::Later),
                // After the end rustls hands out what it still holds, then the end.
                SocketProgress::Bytes(_) | SocketProgress::End => {}
            }
        }
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.drained
    }

    fn read_records(&mut self) -> Result<SocketProgress, ErrorKind> {
        let mut raw = RustlsTransport::new(&self.socket);
        let read = match self.session.read_tls(&mut raw) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.drained = true;
                return Ok(SocketProgress::Later);
            }
            Err(_) => return Err(raw.error.unwrap_or(ErrorKind::Io)),
        };
        self.drained = raw.was_short;
        let processed = self.session.process_new_packets();
        if processed.is_err() {
            // Sends the alert, as far as there is room; the connection ends anyway.
            let _ = self.flush_records();
            return Err(ErrorKind::Tls);
        }
        self.flush_records()?;
        Ok(match read {
            0 => SocketProgress::End,
            n => SocketProgress::Bytes(n),
        })
    }
}

/// The socket as rustls wants it; keeps the kind of an error that std's form would lose.
struct RustlsTransport<'a> {
    socket: &'a TcpSocket,
    error: Option<ErrorKind>,
    was_short: bool,
}

impl<'a> RustlsTransport<'a> {
    fn new(socket: &'a TcpSocket) -> Self {
        Self {
            socket,
            error: None,
            was_short: false,
        }
    }

    fn record_io_result(&mut self, moved: Result<SocketProgress, ErrorKind>) -> io::Result<usize> {
        match moved {
            Ok(SocketProgress::Bytes(n)) => Ok(n),
            Ok(SocketProgress::End) => Ok(0),
            Ok(SocketProgress::Later) => Err(io::ErrorKind::WouldBlock.into()),
            Err(kind) => {
                self.error = Some(kind);
                Err(io::ErrorKind::Other.into())
            }
        }
    }
}

impl Read for RustlsTransport<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let moved = self.socket.receive_bytes(buffer);
        self.was_short = matches!(moved, Ok(SocketProgress::Bytes(n)) if n < buffer.len());
        self.record_io_result(moved)
    }
}

impl Write for RustlsTransport<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let moved = self.socket.send_bytes(bytes);
        self.record_io_result(moved)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Accepts every certificate, for targets with self-signed ones; signatures are still checked.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
