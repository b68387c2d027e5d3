//! Starts each workload with each JDK at hand and asks it what its README promises.
//!
//! Requests go to loopback only, to a port that the kernel says is free.

use std::fs::DirEntry;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::output::Counts;
use crate::error::Error;

/// A start that takes longer than this has failed; Spring needs some 15 s on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// A workload, how its port is given, and a request with what its body must contain.
struct Promise {
    name: &'static str,
    port_option: &'static str,
    path: &'static str,
    body: fn(&str) -> bool,
}

const PROMISES: &[Promise] = &[
    Promise {
        name: "allocation",
        port_option: "--port",
        path: "/result",
        body: |body| {
            serde_json::from_str::<serde_json::Value>(body).is_ok_and(|result| {
                result["threads"]
                    .as_array()
                    .is_some_and(|threads| threads.len() == 2)
            })
        },
    },
    Promise {
        name: "ping",
        port_option: "--port",
        path: "/",
        body: |body| body == "pong\n",
    },
    Promise {
        name: "tomcat",
        port_option: "--port",
        path: "/",
        body: |body| body == "hello\n",
    },
    Promise {
        name: "spring-web",
        port_option: "--server.port",
        path: "/owners?lastName=Da",
        body: |body| {
            body.matches("\"lastName\":\"Da").count() == 48 && body.contains("\"pets\":[{\"name\":")
        },
    },
];

pub fn run(root: &Path) -> Result<Counts, Error> {
    let mut counts = Counts::default();
    for (jdk, java) in jdks() {
        for promise in PROMISES {
            let name = format!("{} on {jdk}", promise.name);
            match keeps(root, &java, promise) {
                Ok(()) => counts.add(Counts::one_passed()),
                Err(why) => {
                    eprintln!("{name}: {why}");
                    counts.add(Counts::one_failed(&name));
                }
            }
        }
    }
    if counts == Counts::default() {
        counts = Counts::one_skipped("answers", "no JDK in /usr/lib/jvm and no java on the path");
    }
    Ok(counts)
}

/// The `java` programs below /usr/lib/jvm, without symbolic links; else `java`.
fn jdks() -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten();
    let program = |entry: DirEntry| {
        let is_own = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name().to_string_lossy().into_owned();
        let java = entry.path().join("bin/java");
        (is_own && java.is_file()).then_some((name, java))
    };
    let mut found: Vec<(String, PathBuf)> = entries.flatten().filter_map(program).collect();
    found.sort();
    if found.is_empty() && Command::new("java").arg("-version").output().is_ok() {
        found.push(("java".to_owned(), PathBuf::from("java")));
    }
    found
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn keeps(root: &Path, java: &Path, promise: &Promise) -> Result<(), String> {
    let jar = root
        .join("build/workloads")
        .join(format!("{}.jar", promise.name));
    let port = free_port().map_err(|error| format!("no free port: {error}"))?;
    let child = Command::new(java)
        .arg("-jar")
        .arg(&jar)
        .arg(format!("{}={port}", promise.port_option))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", java.display()))?;
    let mut running = Running(child);
    let deadline = Instant::now() + READY_WITHIN;
    while get(port, "/health").map(|body| body.trim() == "UP") != Ok(true) {
        if let Ok(Some(status)) = running.0.try_wait() {
            return Err(format!("ended before it was ready: {status}"));
        }
        if Instant::now() > deadline {
            return Err(format!("not ready after {READY_WITHIN:?}"));
        }
        sleep(Duration::from_millis(50));
    }
    let body = get(port, promise.path)?;
    if (promise.body)(&body) {
        return Ok(());
    }
    let begin: String = body.chars().take(300).collect();
    Err(format!("GET {} answered: {begin}", promise.path))
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

/// The body of a good answer. HTTP/1.0, so that it ends with the connection and is not chunked.
fn get(port: u16, path: &str) -> Result<String, String> {
    let exchange = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = exchange().map_err(|error| error.to_string())?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if head.split_whitespace().nth(1) == Some("200") {
        return Ok(body.to_owned());
    }
    let status = head.lines().next().unwrap_or_default();
    Err(format!("GET {path}: {status}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(answer: &'static str) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // Read it completely: closing with unread data would reset the connection.
            let (mut request, mut byte) = (Vec::new(), [0]);
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            stream.write_all(answer.as_bytes()).unwrap();
        });
        port
    }

    #[test]
    fn only_a_good_answer_has_a_body() {
        assert_eq!(
            get(server("HTTP/1.1 200 OK\r\nA: b\r\n\r\nUP"), "/"),
            Ok("UP".to_owned())
        );
        let refused = get(server("HTTP/1.1 503 Busy\r\n\r\nno"), "/x").unwrap_err();
        assert_eq!(refused, "GET /x: HTTP/1.1 503 Busy");
    }
}
