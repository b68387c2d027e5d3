//! A foreign server on the application's port: the trial must not measure it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lab::Lab;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 2] = [
    (
        "a_foreign_server_does_not_fool_it",
        a_foreign_server_does_not_fool_it,
    ),
    ("a_taken_port_is_refused", a_taken_port_is_refused),
];

/// A server of this machine that answers everything with 200 and counts connections.
struct Foreign {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Foreign {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        // It ends with the test program.
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::Relaxed);
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 200 foreign\r\nContent-Length: 0\r\n\r\n");
            }
        });
        Self { port, connections }
    }

    fn url(&self) -> String {
        format!("--url=http://localhost:{}/", self.port)
    }

    #[track_caller]
    fn assert_untouched(&self) {
        assert_eq!(self.connections.load(Ordering::Relaxed), 0);
    }
}

/// Like [`Lab::measure`], with the foreign server's port in the URL.
fn measure(lab: &Lab, foreign: &Foreign) -> crate::process::Call {
    lab.call("run")
        .args(&["--wait", "--accept-noise", "--slo=errors<99%"])
        .args(&["--rate=50/s", "--warm-up=0s", "--measure=300ms"])
        .arg(foreign.url())
}

fn a_foreign_server_does_not_fool_it() -> Outcome {
    let (lab, foreign) = (Lab::new(), Foreign::start());
    let port = format!("port={}", foreign.port);
    let call = measure(&lab, &foreign).zoo(&lab, &["serve", &port]);
    call.into_end().expect_code(0).says(&["PASS"]);
    // An application that does not listen must not get another server's answers.
    let call = measure(&lab, &foreign).arg("--start-deadline=5s");
    let call = call.zoo(&lab, &["never-ready"]);
    call.into_end()
        .expect_code(1)
        .says(&["never_ready", "connection refused"]);
    foreign.assert_untouched();
    None
}

fn a_taken_port_is_refused() -> Outcome {
    let (lab, foreign) = (Lab::new(), Foreign::start());
    let port = format!("port={}", foreign.port);
    let call = measure(&lab, &foreign).arg("--network=host");
    let call = call.zoo(&lab, &["serve", &port]);
    let number = foreign.port.to_string();
    call.into_end().expect_code(3).says(&[&number, "hint: "]);
    foreign.assert_untouched();
    None
}
