//! An API server that lists two workloads, a page at a time, and what it has to refuse.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;

/// From the cluster of `cluster.rs`: `orders` with a heap as large as its limit, and a workload
/// that Prometheus has never seen.
const ORDERS: &str = r#"{"metadata": {"name": "orders", "namespace": "shop"}, "spec": {"template": {"spec":
    {"containers": [{"name": "orders", "image": "registry.example/orders:1.4",
      "env": [{"name": "JAVA_TOOL_OPTIONS", "value": "-Xmx1g"}],
      "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}}]}}}}"#;
const IDLE: &str = r#"{"metadata": {"name": "idle", "namespace": "shop"}, "spec": {"template": {"spec":
    {"containers": [{"name": "idle", "image": "registry.example/idle:1"}]}}}}"#;

/// A server and the kubeconfig that leads to it; its thread ends with the test process.
pub fn start(place: &Path) -> PathBuf {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(&stream));
        }
    });
    let path = place.join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         clusters: [{{name: test, cluster: {{server: 'http://{address}'}}}}]\n\
         users: [{{name: test, user: {{}}}}]\n\
         contexts: [{{name: test, context: {{cluster: test, user: test}}}}]\n"
    );
    std::fs::write(&path, text).expect("it is written");
    path
}

fn serve(stream: &TcpStream) {
    let mut lines = BufReader::new(stream).lines();
    let mut next = || lines.next()?.ok();
    while let Some(first) = next() {
        while next().is_some_and(|line| !line.is_empty()) {}
        let target = first.split(' ').nth(1).unwrap_or_default();
        let (status, body) = answer(target);
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = stream;
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(target: &str) -> (&'static str, String) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let list = |kind: &str, items: &str, rest: &str| {
        let text = format!(
            r#"{{"kind": "{kind}List", "apiVersion": "apps/v1",
                "metadata": {{"resourceVersion": "7", "continue": "{rest}"}}, "items": [{items}]}}"#
        );
        ("200 OK", text)
    };
    match path {
        "/apis/apps/v1/deployments" if query.contains("continue=more") => {
            list("Deployment", ORDERS, "")
        }
        "/apis/apps/v1/deployments" => list("Deployment", IDLE, "more"),
        "/apis/apps/v1/statefulsets" => list("StatefulSet", "", ""),
        _ => {
            let why = r#"deployments.apps is forbidden: User \"dev\" cannot list resource \"deployments\" in API group \"apps\" in the namespace \"secret\""#;
            let text = format!(
                r#"{{"kind": "Status", "apiVersion": "v1", "metadata": {{}}, "status": "Failure",
                    "message": "{why}", "reason": "Forbidden", "code": 403}}"#
            );
            ("403 Forbidden", text)
        }
    }
}
