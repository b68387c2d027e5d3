//! An API server with a forged Job and forged config maps, as any writer to the namespace could
//! make them.
//!
//! Owns the answers, and remembers the requests. It makes no Job: a request for a Job is refused,
//! and no test goes further.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use loadline_kubernetes::in_cluster::pieces::{PieceChunk, ResultPiece, piece_digest, split_piece};
use serde_json::{Value, json};

/// The label and the annotations of what belongs to a result.
const RESULT: &str = "loadline.dev/result";

/// What the namespace holds.
#[derive(Debug, Clone, Default)]
pub struct Forged {
    pub jobs: Vec<Value>,
    pub config_maps: Vec<Value>,
}

impl Forged {
    /// A Job that ended without a word, and these pieces, as a loadline would have kept them.
    pub fn ended(result: &str, pieces: &[ResultPiece]) -> Self {
        let mut all: Vec<PieceChunk> = Vec::new();
        for piece in pieces {
            let first = all.len() as u32;
            all.extend(split_piece(piece, first).expect("it is packed"));
        }
        let name = format!("loadline-result-{result}");
        let digest = piece_digest(&all[..1]);
        let why = json!({ "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded" });
        let job = json!({
            "metadata": {
                "name": name, "uid": "u", "labels": { RESULT: result },
                "annotations": { "loadline.dev/first-piece": digest },
            },
            "status": { "conditions": [why] },
        });
        let owner = json!({ "apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": "u" });
        let config_map = |chunk: &PieceChunk| {
            json!({
                "metadata": {
                    "name": format!("{name}-{:05}", chunk.number),
                    "labels": { RESULT: result, "loadline.dev/piece": chunk.number.to_string() },
                    "annotations": { "loadline.dev/part": format!("{}/{}", chunk.part, chunk.parts) },
                    "ownerReferences": [owner],
                },
                "binaryData": { "piece": base64(&chunk.bytes) },
            })
        };
        Self {
            jobs: vec![job],
            config_maps: all.iter().map(config_map).collect(),
        }
    }
}

/// A server; its thread ends with the test process.
pub struct ApiServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl ApiServer {
    pub fn start(holds: Forged) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (heard, holds) = (Arc::clone(&requests), Arc::new(holds));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (heard, holds) = (Arc::clone(&heard), Arc::clone(&holds));
                thread::spawn(move || serve(stream, &holds, &heard).ok());
            }
        });
        Self { address, requests }
    }

    /// Everything that was asked, with its bodies.
    pub fn requests(&self) -> Vec<String> {
        self.requests
            .lock()
            .expect("no thread died with it")
            .clone()
    }

    /// Requests that would change something.
    pub fn changes(&self) -> Vec<String> {
        let all = self.requests().into_iter();
        all.filter(|request| !request.starts_with("GET ")).collect()
    }
}

/// A kubeconfig with a context for each of these servers; the first is the current one.
pub fn kubeconfig(place: &Path, servers: &[(&str, &ApiServer)]) -> PathBuf {
    let (current, _) = servers[0];
    let list = |entry: &dyn Fn(&str, SocketAddr) -> String| {
        let all: Vec<String> = servers.iter().map(|(n, s)| entry(n, s.address)).collect();
        all.join(", ")
    };
    let clusters =
        list(&|name, at| format!("{{name: {name}, cluster: {{server: 'http://{at}'}}}}"));
    let contexts = list(&|name, _| {
        format!("{{name: {name}, context: {{cluster: {name}, user: u, namespace: sizing}}}}")
    });
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {current}\nclusters: [{clusters}]\n\
         users: [{{name: u, user: {{token: operators-token}}}}]\ncontexts: [{contexts}]\n"
    );
    let path = place.join("kubeconfig");
    std::fs::write(&path, text).expect("it is written");
    path
}

fn serve(mut stream: TcpStream, holds: &Forged, heard: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or_default();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let request = first.trim_end_matches(" HTTP/1.1\r\n");
        let heard_now = format!("{request} {}", String::from_utf8_lossy(&body));
        heard
            .lock()
            .expect("no thread died with it")
            .push(heard_now);
        let (status, body) = answer(request, holds);
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
    }
}

fn answer(request: &str, holds: &Forged) -> (&'static str, Value) {
    let (method, target) = request.split_once(' ').unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let list = |kind: &str, items: &[Value]| {
        let metadata = json!({ "resourceVersion": "1" });
        let all = json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata, "items": items });
        ("200 OK", all)
    };
    match (method, path.rsplit('/').next()) {
        ("GET", Some("version")) => (
            "200 OK",
            json!({ "major": "1", "minor": "34", "gitVersion": "v1.34.4", "gitCommit": "",
                "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": "" }),
        ),
        // Of earlier trials there are none.
        ("GET", Some("jobs")) if query.contains("loadline.dev%2Fclient") => list("JobList", &[]),
        ("GET", Some("jobs")) => list("JobList", &holds.jobs),
        ("GET", Some("configmaps")) => list("ConfigMapList", &holds.config_maps),
        ("GET", _) => list("List", &[]),
        ("DELETE" | "PATCH", _) => ("200 OK", holds.jobs[0].clone()),
        _ => (
            "403 Forbidden",
            json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "as far as this test goes", "reason": "Forbidden", "code": 403 }),
        ),
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three
            .iter()
            .chain(&[0, 0])
            .take(3)
            .fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        for at in 0..4 {
            let letter = char::from(LETTERS[bits >> (18 - 6 * at) & 63]);
            text.push(if at > three.len() { '=' } else { letter });
        }
    }
    text
}
