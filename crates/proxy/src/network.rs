//! Network namespaces: the application's, and its dependencies'.
//!
//! Owns how the proxy is present in both, which deceives the application without changing it: in
//! its network the proxy listens at the dependency's address, in the other one the dependency
//! itself does. A socket stays in the namespace in which it was made, so one thread may listen in
//! the first and connect in the second. Facts: network_namespaces(7), setns(2).

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use loadline_sys::{LinkNameSpaceType, Namespaces, move_into_link_name_space};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApplicationNetwork {
    Host,
    /// One that the proxy makes: a loopback interface only.
    Own,
    /// This one, such as `/proc/PID/ns/net`.
    Of(PathBuf),
}

#[derive(Debug)]
pub(crate) struct EnteredNetwork {
    namespace: File,
    /// Counters of its TCP, opened there: they stay that network's wherever the thread goes.
    counters: Option<File>,
}

impl EnteredNetwork {
    pub(crate) fn new(front: &ApplicationNetwork) -> io::Result<Self> {
        match front {
            ApplicationNetwork::Host => {}
            ApplicationNetwork::Of(path) => enter_network(&open_network(path)?)?,
            ApplicationNetwork::Own => make_network()?,
        }
        // On the machine's network others fail to connect as well.
        let is_alone = *front != ApplicationNetwork::Host;
        let counters = is_alone.then(|| File::open("/proc/thread-self/net/snmp").ok());
        Ok(Self {
            namespace: open_network(Path::new("/proc/thread-self/ns/net"))?,
            counters: counters.flatten(),
        })
    }

    /// The file that stands for it, as others may open it: this process is not always in it.
    pub(crate) fn network_file(&self) -> PathBuf {
        let descriptor = self.namespace.as_raw_fd();
        PathBuf::from(format!("/proc/{}/fd/{descriptor}", std::process::id()))
    }

    pub(crate) fn reenter_network(&self) -> io::Result<()> {
        enter_network(&self.namespace)
    }

    /// Failed connections in it since it was made; `None` without separate counters.
    pub(crate) fn failed_attempts(&mut self) -> Option<u64> {
        let counters = self.counters.as_mut()?;
        counters.rewind().ok()?;
        let mut text = String::new();
        counters.take(64 << 10).read_to_string(&mut text).ok()?;
        attempt_fails(&text)
    }
}

pub(crate) fn enter_network(namespace: &File) -> io::Result<()> {
    let network = Some(LinkNameSpaceType::Network);
    let entered = move_into_link_name_space(namespace.as_fd(), network);
    entered.map_err(|errno| step_error("entering a network namespace", errno.into()))
}

pub(crate) fn open_network(path: &Path) -> io::Result<File> {
    File::open(path).map_err(|error| step_error(&path.display().to_string(), error))
}

fn make_network() -> io::Result<()> {
    let made = loadline_sys::unshare(Namespaces {
        net: true,
        ..Namespaces::default()
    });
    made.map_err(io::Error::other)?;
    loadline_sys::set_interface_up("lo").map_err(io::Error::other)?;
    // As container engines do, and as the networks that an application's own container makes.
    let _ = std::fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    Ok(())
}

fn step_error(step: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{step}: {error}"))
}

/// `Tcp: ... AttemptFails ...` twice, names and numbers. Source: RFC 4022, tcpAttemptFails:
/// connections that went from SYN-SENT to CLOSED.
fn attempt_fails(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
    let names = lines.next()?.split(' ');
    let mut numbers = lines.next()?.split(' ');
    let index = names.into_iter().position(|name| name == "AttemptFails")?;
    numbers.nth(index)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_attempts_are_read_by_their_name() {
        // Captured on Linux 6.18, shortened.
        let text = "\
Icmp: InMsgs InErrors
Icmp: 1 2
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab
Tcp: 1 200 120000 -1 9210 8011 417 55 12
";
        assert_eq!(attempt_fails(text), Some(417));
        assert_eq!(attempt_fails("Tcp: A B\nTcp: 1 2\n"), None);
        assert_eq!(attempt_fails(""), None);
    }
}
