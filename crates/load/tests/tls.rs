//! HTTPS: the same counts as over plain TCP, and certificates that are checked.

mod plans;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use loadline_load::{LoadModel, LoadPlan, LoadTotals, TlsSpec, call_service, run};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

const BODY: usize = 200_000;

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// The only frame of a call that ends well: status 200 by index, `grpc-status` 0 as a literal.
const CALL_ENDED: &[u8] = b"\0\0\x10\x01\x05\0\0\0\x01\x88\0\x0bgrpc-status\x010";

/// Answers every request with a body of [`BODY`] bytes, and a gRPC call with OK.
fn server() -> SocketAddr {
    let certificate = CertificateDer::from_pem_file(data("certificate.pem")).expect("it is there");
    let key = PrivateKeyDer::from_pem_file(data("key.pem")).expect("it is there");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("key and certificate fit");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            thread::spawn(move || serve(stream, config));
        }
    });
    address
}

/// Returns when the connection is over.
fn serve(stream: TcpStream, config: Arc<ServerConfig>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut stream = StreamOwned::new(ServerConnection::new(config).ok()?, stream);
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n{}",
        "x".repeat(BODY)
    );
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 => seen.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
        if seen.starts_with(b"PRI") {
            stream.write_all(CALL_ENDED).ok()?;
            return stream.flush().ok();
        }
        while let Some(end) = seen.windows(4).position(|w| w == b"\r\n\r\n") {
            seen.drain(..end + 4);
            stream.write_all(answer.as_bytes()).ok()?;
            stream.flush().ok()?;
        }
    }
}

fn go(model: LoadModel, tls: TlsSpec) -> LoadTotals {
    let plan = LoadPlan {
        tls: Some(tls),
        timeout: Duration::from_secs(20),
        drain: Duration::from_secs(20),
        ..plans::plan(server(), model)
    };
    let outcome = run(&plan, &Arc::new(AtomicBool::new(false)), &mut |_| {});
    outcome.expect("the plan can be run").measure
}

fn checked(name: &str, roots: Option<PathBuf>) -> TlsSpec {
    TlsSpec {
        server_name: name.to_owned(),
        insecure: false,
        roots,
    }
}

#[test]
fn requests_over_tls_are_answered_and_bodies_arrive_whole() {
    for model in [
        LoadModel::ClosedRequests { requests: 200 },
        LoadModel::at_constant_rate(100.0, Duration::from_secs(2)),
    ] {
        let totals = go(model, checked("localhost", Some(data("certificate.pem"))));
        assert_eq!(totals.ok, 200, "{:?}", totals.errors_by_name());
        assert_eq!(totals.body_bytes, 200 * BODY as u64);
    }
}

#[test]
fn a_certificate_that_does_not_fit_is_an_error_unless_any_is_accepted() {
    let model = LoadModel::ClosedRequests { requests: 16 };
    let other = checked("example.org", Some(data("certificate.pem")));
    let totals = go(model.clone(), other.clone());
    assert_eq!((totals.ok, totals.errors_by_name()["tls"]), (0, 16));
    let any = TlsSpec {
        insecure: true,
        ..other
    };
    assert_eq!(go(model, any).ok, 16);
}

#[test]
fn a_call_of_its_own_is_encrypted_as_the_load_is() {
    let target = format!("https://localhost:{}", server().port());
    let target = target.parse().unwrap();
    let call = |name: &str| {
        let tls = checked(name, Some(data("certificate.pem")));
        let what = ("/a.B/C", &[][..]);
        call_service(&target, Some(&tls), what, Duration::from_secs(20))
    };
    assert_eq!(call("localhost").unwrap().status, Some(0));
    let refusal = call("example.org").unwrap_err().to_string();
    assert!(refusal.contains("certificate"), "{refusal}");
}

#[test]
fn plain_text_where_tls_is_expected_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let plan = LoadPlan {
        tls: Some(checked("localhost", Some(data("certificate.pem")))),
        ..plans::plan(address, LoadModel::ClosedRequests { requests: 8 })
    };
    let outcome = run(&plan, &Arc::new(AtomicBool::new(false)), &mut |_| {}).unwrap();
    assert_eq!(
        (outcome.measure.ok, outcome.measure.failed_requests()),
        (0, 8)
    );
}
