//! The live page of a real run: what it shows is what the run says, and its button ends the run.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::lab::Lab;
use crate::process::POLL;
use crate::runner::{Case, Outcome};
use crate::traces::{assert_nothing_left, networks, trials};

pub const CASES: [Case; 1] = [(
    "a_run_is_followed_and_stopped_from_its_page",
    a_run_is_followed_and_stopped_from_its_page,
)];

fn a_run_is_followed_and_stopped_from_its_page() -> Outcome {
    let lab = Lab::new();
    // Begun before there is a store: what comes later is seen.
    let said = lab.path().join("address");
    let stdout = Stdio::from(File::create(&said).expect("a file"));
    let mut server = lab
        .call("serve")
        .arg("--listen=127.0.0.1:0")
        .start_with(stdout);
    server.until("it serves", |text| text.contains("stop with Ctrl-C"));
    let link = loop {
        let text = std::fs::read_to_string(&said).expect("a file");
        if let Some(link) = text.strip_suffix("\n") {
            break link.trim_start_matches("http://").to_owned();
        }
        std::thread::sleep(POLL);
    };
    let (address, token) = link.split_once("/?token=").expect("a link with a token");
    let page = PageAddress { address, token };
    let sizing = lab.size_with(&["--prove=20", "--measure=3s"]).start();
    let events = page.until("\"phase\":\"measure\"");
    assert!(events.contains("\"label\":\"room "), "{events}");
    let memory = page.until("\"memory_mib\":");
    assert!(
        memory.contains("half of such searches end within"),
        "{memory}"
    );

    let id = lab.results()[0]["id"].as_str().expect("an id").to_owned();
    let owners = trials(&lab);
    let networks = networks(&lab);
    let shown = page.ask("GET", &format!("/results/{id}"), "");
    let secret = shown
        .split("data-secret=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let header = format!("X-Loadline-Secret: {}\r\n", secret.expect("a secret"));
    let stop = format!("/results/{id}/stop");
    let refused = page.ask("POST", &stop, "X-Loadline-Secret: 0\r\n");
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    let stopped = page.ask("POST", &stop, &header);
    assert!(stopped.contains("is asked to stop"), "{stopped}");
    sizing
        .end()
        .expect_code(130)
        .says(&["interrupted", "loadline resume "]);
    assert_eq!(lab.results()[0]["status"], "interrupted");
    let again = page.ask("POST", &stop, &header);
    assert!(again.contains("does not run any more"), "{again}");

    server.signal(Signal::INT);
    server.end().expect_code(0);
    assert_nothing_left(&lab, &owners, &networks);
    None
}

/// Where the page is, and what lets a visitor in.
struct PageAddress<'a> {
    address: &'a str,
    token: &'a str,
}

impl PageAddress<'_> {
    fn send(&self, method: &str, path: &str, headers: &str) -> TcpStream {
        let Self { address, token } = self;
        let mut stream = TcpStream::connect(address).expect("it listens");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{headers}Content-Length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("sent");
        stream
    }

    fn ask(&self, method: &str, path: &str, headers: &str) -> String {
        let mut text = String::new();
        let mut stream = self.send(method, path, headers);
        stream.read_to_string(&mut text).expect("answered");
        text
    }

    /// What the stream of events has said when this is in it.
    fn until(&self, wanted: &str) -> String {
        let mut stream = self.send("GET", "/events", "");
        let patience = stream.set_read_timeout(Some(Duration::from_secs(60)));
        patience.expect("a timeout");
        let mut text = String::new();
        let mut block = vec![0; 64 << 10];
        while !text.contains(wanted) {
            let length = stream.read(&mut block).expect("events come");
            assert!(length > 0, "the stream ended before {wanted}: {text}");
            text.push_str(&String::from_utf8_lossy(&block[..length]));
        }
        text
    }
}
