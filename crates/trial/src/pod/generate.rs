//! A load generator in a separate pod: `loadline pod-generator`.
//!
//! Owns where it listens and how it recognises its client: by a secret in a file that only its
//! container has. [`loadline_load::remote`] owns the conversation.

use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::{fs, io};

use loadline_load::remote::serve;
use loadline_protocol::RunRefusal;

const SHORTEST: usize = 32;

/// Makes load for its client until `stop` is set, or none has come within the given time. Errors:
/// [`RunRefusal`] without a secret, or if it cannot listen.
pub fn generate_load(
    secret: &Path,
    port: u16,
    idle: Duration,
    stop: &AtomicBool,
) -> Result<(), RunRefusal> {
    let text = fs::read_to_string(secret).unwrap_or_default();
    if text.len() < SHORTEST {
        return Err(RunRefusal::new(
            "generating load in a pod",
            "this is a part of loadline, which it starts itself",
            "see `loadline load` to make load from a command line",
        ));
    }
    let served = listen_on_all(port).and_then(|listener| serve(&listener, &text, idle, stop));
    served.map_err(|error| {
        let hint = "another program of the pod may have the port";
        RunRefusal::new(format!("listening on port {port}"), error, hint)
    })
}

/// On all addresses; a node without IPv6 has only the others.
fn listen_on_all(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
        .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_secret_nobody_is_served() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let stop = AtomicBool::new(true);
        let refused = |text: &str| {
            fs::write(file.path(), text).expect("it is written");
            generate_load(file.path(), 0, Duration::ZERO, &stop).is_err()
        };
        assert!(refused(""));
        assert!(!refused(&"5".repeat(64)));
    }
}
