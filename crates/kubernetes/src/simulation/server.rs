//! An API server of a test, over real HTTP: what loadline asks of one, and nothing else.
//!
//! Owns the answers, and counts requests. A thread a connection; one more lets the cluster go on.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::control::{ApiServerState, SimulatedNode};
use crate::labels::{OWN, RESULT};

const STEP: Duration = Duration::from_millis(5);

/// The API server; its threads end with the test process.
#[derive(Clone)]
pub(super) struct ApiServer {
    shared: Arc<Mutex<ApiServerState>>,
    pub(super) address: SocketAddr,
}

struct ApiRequest {
    method: String,
    path: String,
    query: String,
    body: Value,
}

impl ApiServer {
    /// A server of a cluster with these nodes, that evicts one in `evicts` pods.
    pub(super) fn start_server(hosts: Vec<SimulatedNode>, evicts: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let state = ApiServerState {
            hosts,
            evicts,
            lingers: 5,
            ..ApiServerState::default()
        };
        let server = Self {
            shared: Arc::new(Mutex::new(state)),
            address: listener.local_addr().expect("it is bound"),
        };
        let own = server.clone();
        thread::spawn(move || {
            loop {
                own.state().advance_step();
                thread::sleep(STEP);
            }
        });
        let own = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.clone();
                // A client that goes away ends its thread.
                thread::spawn(move || own.serve(stream).ok());
            }
        });
        server
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ApiServerState> {
        self.shared.lock().expect("no thread died with it")
    }

    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some(request) = read(&mut reader)? {
            let job = request.job_of_request();
            let mut state = self.state();
            *state.requests.entry(job.clone()).or_default() += 1;
            let right = request.needed_right();
            if right
                .as_ref()
                .is_some_and(|(resource, _)| resource == "nodes")
            {
                state.requests_of_nodes += 1;
            }
            state.verbs.extend(right);
            drop(state);
            if request.query.contains("watch=true") {
                return self.stream_pod_events(&mut stream, &job);
            }
            let (status, body) = self.answer_request(&request, &job);
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
            );
            stream.write_all(head.as_bytes())?;
            stream.write_all(body.as_bytes())?;
        }
        Ok(())
    }

    /// Streams events of a Job's pod until the client has gone.
    fn stream_pod_events(&self, stream: &mut TcpStream, job: &str) -> std::io::Result<()> {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes())?;
        stream.set_nonblocking(true)?;
        let mut told = 0;
        loop {
            thread::sleep(STEP * 4);
            let new: Vec<String> = {
                let state = self.state();
                let all = state.told.get(job);
                all.map_or_else(Vec::new, |all| all[told..].to_vec())
            };
            told += new.len();
            for event in new {
                let chunk = format!("{:x}\r\n{event}\n\r\n", event.len() + 1);
                stream.set_nonblocking(false)?;
                stream.write_all(chunk.as_bytes())?;
                stream.set_nonblocking(true)?;
            }
            // Nothing more is asked on this connection: it can only end.
            match stream.read(&mut [0]) {
                Ok(0) => return Ok(()),
                Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
    }

    fn answer_request(&self, request: &ApiRequest, job: &str) -> (&'static str, String) {
        let resource = request.path.rsplit('/').find(|part| KINDS.contains(part));
        match (request.method.as_str(), resource) {
            ("GET", Some("version")) => ok(&version_response()),
            ("GET", Some("jobs")) => {
                let named = request.selected_name();
                let all = self.state().jobs_with_status();
                let items = all
                    .into_iter()
                    .filter(|item| {
                        named
                            .as_ref()
                            .is_none_or(|n| item["metadata"]["name"] == **n)
                    })
                    .filter(|item| request.selects(item));
                ok(&list_response(
                    "JobList",
                    "batch/v1",
                    &items.collect::<Vec<_>>(),
                ))
            }
            ("GET", Some("configmaps")) => {
                let named = request.selected_name();
                let mut state = self.state();
                if state.is_away > 0 {
                    state.is_away -= 1;
                    // As when etcd has no leader; after a 503 the client itself asks again.
                    return status_response("500 Internal Server Error", "InternalError", 500);
                }
                let items = state
                    .config_maps
                    .values()
                    .filter(|item| {
                        named
                            .as_ref()
                            .is_none_or(|n| item["metadata"]["name"] == **n)
                    })
                    .filter(|item| request.selects(item))
                    .cloned();
                ok(&list_response(
                    "ConfigMapList",
                    "v1",
                    &items.collect::<Vec<_>>(),
                ))
            }
            ("POST", Some("configmaps")) => self.keep_config_map(&request.body),
            ("POST", Some("jobs")) => {
                let mut made = request.body.clone();
                made["metadata"]["uid"] = json!(format!("uid-{job}"));
                self.state().jobs.insert(job.to_owned(), made.clone());
                ok(&made)
            }
            ("PATCH", Some("jobs")) => {
                let mut state = self.state();
                let Some(known) = state.jobs.get_mut(job) else {
                    return status_response("404 Not Found", "NotFound", 404);
                };
                known["spec"]["suspend"] = request.body["spec"]["suspend"].clone();
                ok(&known.clone())
            }
            ("DELETE", Some("jobs")) => {
                if self.state().delete(job) {
                    ok(
                        &json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success" }),
                    )
                } else {
                    status_response("404 Not Found", "NotFound", 404)
                }
            }
            ("POST", Some("secrets")) => {
                self.take_secret(job, &request.body);
                ok(&request.body)
            }
            ("GET", Some("log")) => self.pod_log(request, job),
            ("GET", Some("events")) => ok(&list_response("EventList", "v1", &[])),
            // What a Role cannot give.
            _ => status_response("403 Forbidden", "Forbidden", 403),
        }
    }

    /// Keeps a config map under a name that is free; its answer may be lost.
    fn keep_config_map(&self, made: &Value) -> (&'static str, String) {
        let name = made["metadata"]["name"].as_str().unwrap_or_default();
        let mut state = self.state();
        if state.config_maps.contains_key(name) {
            return status_response("409 Conflict", "AlreadyExists", 409);
        }
        state.config_maps.insert(name.to_owned(), made.clone());
        if state.loses_answers > 0 {
            state.loses_answers -= 1;
            return status_response("504 Gateway Timeout", "Timeout", 504);
        }
        ok(made)
    }

    fn take_secret(&self, job: &str, secret: &Value) {
        let Some(text) = secret["data"]["order"].as_str() else {
            // A controller's variables; a generator's Secret lacks trial variables too.
            self.state().secrets.insert(job.to_owned(), secret.clone());
            return;
        };
        let packed = STANDARD.decode(text).expect("it is base64");
        let order = zstd::decode_all(packed.as_slice()).expect("it is packed");
        let order = serde_json::from_slice(&order).expect("it is an order");
        self.state().orders.insert(job.to_owned(), order);
    }

    fn pod_log(&self, request: &ApiRequest, job: &str) -> (&'static str, String) {
        let state = self.state();
        let is_own = request.query.contains(&format!("container={OWN}"));
        if !is_own && !ApiServerState::is_look(job) {
            return ("200 OK", state.run_end.output.to_owned());
        }
        let Some(pod) = state.pods.get(job) else {
            return status_response("404 Not Found", "NotFound", 404);
        };
        let end = if state.evicted.contains(job) {
            pod.log.len() / 2
        } else {
            pod.log.len()
        };
        ("200 OK", pod.log[..end].to_owned())
    }
}

/// Resources of a path, by the last word of its kind in a path.
const KINDS: [&str; 8] = [
    "version",
    "jobs",
    "secrets",
    "configmaps",
    "pods",
    "log",
    "events",
    "nodes",
];

impl ApiRequest {
    fn needed_right(&self) -> Option<(String, &'static str)> {
        let last = self.path.rsplit('/').next()?;
        let resource = self.path.rsplit('/').find(|part| KINDS.contains(part))?;
        let verb = match self.method.as_str() {
            "POST" => "create",
            "PATCH" => "patch",
            "DELETE" => "delete",
            _ if self.query.contains("watch=true") => "watch",
            _ if last == resource && resource != "log" => "list",
            _ => "get",
        };
        match resource {
            "version" => None,
            "log" => Some(("pods/log".to_owned(), verb)),
            other => Some((other.to_owned(), verb)),
        }
    }

    fn selected_name(&self) -> Option<String> {
        self.query.split('&').find_map(|part| {
            let (_, name) = part.split_once("metadata.name%3D")?;
            Some(name.to_owned())
        })
    }

    /// Whether an object has the labels that are asked for, of those of results.
    fn selects(&self, of: &Value) -> bool {
        let Some(selector) = self
            .query
            .split('&')
            .find_map(|p| p.strip_prefix("labelSelector="))
        else {
            return true;
        };
        let selector = selector
            .replace("%3D", "=")
            .replace("%2C", ",")
            .replace("%2F", "/");
        let labels = &of["metadata"]["labels"];
        selector
            .split(',')
            .filter(|part| part.starts_with(RESULT))
            .all(|part| match part.split_once('=') {
                Some((label, value)) => labels[label] == value,
                None => !labels[part].is_null(),
            })
    }

    fn job_of_request(&self) -> String {
        let selected = self.query.split('&').find_map(|part| {
            let (_, name) = part.split_once("job-name%3D")?;
            Some(name.to_owned())
        });
        let of_body = || self.body["metadata"]["name"].as_str().map(str::to_owned);
        let of_path = || {
            let mut parts = self.path.split('/');
            let name = parts.find(|part| part.starts_with("loadline-"))?;
            Some(name.trim_end_matches("-x").to_owned())
        };
        let job = selected.or_else(of_path).or_else(of_body);
        job.unwrap_or_default()
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<ApiRequest>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or_default();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut words = first.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Ok(Some(ApiRequest {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    }))
}

fn ok(body: &Value) -> (&'static str, String) {
    ("200 OK", body.to_string())
}

fn status_response(line: &'static str, reason: &str, code: u16) -> (&'static str, String) {
    let body = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code });
    (line, body.to_string())
}

fn list_response(kind: &str, version: &str, items: &[Value]) -> Value {
    json!({ "kind": kind, "apiVersion": version, "metadata": { "resourceVersion": "1" }, "items": items })
}

fn version_response() -> Value {
    json!({ "major": "1", "minor": "34", "gitVersion": "v1.34.4", "gitCommit": "", "gitTreeState": "",
        "buildDate": "", "goVersion": "", "compiler": "", "platform": "" })
}
