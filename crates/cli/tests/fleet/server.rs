//! A real Prometheus over blocks that `promtool` made.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A server that ends with it.
pub struct Served {
    /// Its address.
    pub url: String,
    /// Its blocks and a place for more.
    pub directory: TempDir,
    child: Child,
}

impl Served {
    /// Fills one and starts it; `None` after a SKIP line if this machine has no Prometheus.
    pub fn start(test: &str, openmetrics: &str) -> Option<Self> {
        let has = |program: &str| {
            let mut command = Command::new(program);
            command
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command.status().is_ok_and(|s| s.success())
        };
        if !has("prometheus") || !has("promtool") {
            println!("SKIP {test}: no prometheus on this machine (package prometheus)");
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let input = directory.path().join("series.txt");
        std::fs::write(&input, openmetrics).expect("it is written");
        let data = directory.path().join("data");
        let filled = Command::new("promtool")
            .args(["tsdb", "create-blocks-from", "openmetrics", "-q"])
            .args([&input, &data])
            .output()
            .expect("it starts");
        assert!(filled.status.success(), "{filled:?}");
        let config = directory.path().join("prometheus.yml");
        std::fs::write(&config, "{}\n").expect("it is written");
        let port = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = port.local_addr().expect("an address").to_string();
        drop(port);
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg("--storage.tsdb.retention.time=100y")
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let served = Self {
            url: format!("http://{address}"),
            directory,
            child,
        };
        let started = Instant::now();
        while !is_ready(&address) {
            assert!(started.elapsed() < Duration::from_secs(60), "it gets ready");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(served)
    }
}

/// Whether its blocks are read: until then it answers 503.
fn is_ready(address: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return false;
    };
    let mut answer = String::new();
    stream.write_all(b"GET /-/ready HTTP/1.0\r\n\r\n").is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.contains(" 200 ")
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
