//! `--notify`: a webhook hears how a run ended, and an absent listener is a warning.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::lab::Lab;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 1] = [(
    "a_webhook_hears_how_a_run_ended",
    a_webhook_hears_how_a_run_ended,
)];

/// Takes one request and gives its body.
fn hook(listener: TcpListener) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a request");
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line");
            let lower = line.to_ascii_lowercase();
            if let Some(text) = lower.strip_prefix("content-length:") {
                length = text.trim().parse().expect("a length");
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
        reader.get_mut().write_all(answer).expect("an answer");
        String::from_utf8(body).expect("text")
    })
}

fn a_webhook_hears_how_a_run_ended() -> Outcome {
    let lab = Lab::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!(
        "http://{}/T0/B0/s3cret",
        listener.local_addr().expect("an address")
    );
    let heard = hook(listener);
    let flags = ["--memory=64Mi", "--repeats=1"];
    let run = |url: &str| {
        let call = lab.measure("run").args(&flags).args(&["--notify", url]);
        call.zoo(&lab, &["serve"]).into_end().expect_code(0)
    };
    run(&url);
    let body = heard.join().expect("it hears");
    let told: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    let result = &lab.results()[0];
    assert_eq!(told["result"], result["id"], "{body}");
    assert_eq!(
        (&told["kind"], &told["status"]),
        (&"run".into(), &"done".into())
    );
    let text = told["text"].as_str().expect("a text");
    assert!(text.contains("1 of 1") || text.contains("kept"), "{text}");
    // The address is a secret: it is in no stored file.
    let id = result["id"].as_str().expect("an id");
    let kept = lab.result(id).to_string();
    assert!(!kept.contains("s3cret"), "{kept}");
    // The webhook's listener has gone; the measurement stands.
    run(&url).says(&["warning: --notify: the webhook was not reached (3 tries)"]);
    None
}
