//! Who listens on a port of the machine: the application under test, or someone else?
//!
//! Owns the answer for trials that use the machine's network, where another server may hold the
//! port. Facts: proc_net(5) tcp and tcp6 tables, socket links below /proc/PID/fd.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::{fs, io};

use loadline_protocol::{NetworkMode, TrialOrder};

use crate::halt::{HaltReason, refusal_halt};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    None,
    Ours,
    Foreign,
}

/// Whether a port is taken, by trying to listen on it; gives the error of the kernel if so.
pub fn bind_error(port: u16) -> Option<io::Error> {
    let addresses: [SocketAddr; 3] = [
        (Ipv4Addr::LOCALHOST, port).into(),
        (Ipv4Addr::UNSPECIFIED, port).into(),
        (Ipv6Addr::UNSPECIFIED, port).into(),
    ];
    addresses.into_iter().find_map(|address| {
        let error = TcpListener::bind(address).err()?;
        // A machine without IPv6 has no such address; that is no conflict.
        (error.kind() == io::ErrorKind::AddrInUse).then_some(error)
    })
}

/// Refuses to start an application if another server has its port: that server would be measured.
pub(crate) fn refuse_taken_port(order: &TrialOrder) -> Result<(), HaltReason> {
    let asked = order.readiness.asked_port();
    let Some(port) = asked.filter(|_| order.network == NetworkMode::Host) else {
        return Ok(());
    };
    match bind_error(port) {
        None => Ok(()),
        Some(error) => Err(refusal_halt(
            &format!("port {port} of this machine"),
            format!("another program listens on it ({error}); nothing was sent to it"),
            "stop the other program, choose another port, or give the application its own network (the default)",
        )),
    }
}

pub fn find_listener(port: u16, processes: &[u32]) -> Listener {
    let listening: BTreeSet<u64> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .collect();
    if listening.is_empty() {
        return Listener::None;
    }
    let ours: BTreeSet<u64> = processes.iter().flat_map(|pid| sockets_of(*pid)).collect();
    if listening.is_subset(&ours) {
        Listener::Ours
    } else {
        Listener::Foreign
    }
}

/// Inodes of sockets in state LISTEN (0A) on a port. Columns: sl, local address, remote address,
/// state, ..., the tenth is the inode.
fn listening_inodes(table: &str, port: u16) -> Vec<u64> {
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
        let is_listening = *fields.get(3)? == "0A";
        let is_port = u16::from_str_radix(local_port, 16).ok()? == port;
        let inode = fields.get(9).filter(|_| is_listening && is_port)?;
        inode.parse().ok()
    };
    table.lines().skip(1).filter_map(inode).collect()
}

fn sockets_of(pid: u32) -> Vec<u64> {
    // A process that has ended meanwhile has no sockets.
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    let inode = |entry: io::Result<fs::DirEntry>| {
        let target = fs::read_link(entry.ok()?.path()).ok()?;
        let text = target.to_str()?;
        let number = text.strip_prefix("socket:[")?.strip_suffix(']')?;
        number.parse().ok()
    };
    entries.filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Captured on Linux 6.18: a listener on 127.0.0.1:8080, its connection, a listener on 22.
    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 20477 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:B1C6 01 00000000:00000000 00:00000000 00000000     0        0 20480 1 0000000000000000 20 0 0 10 -1
   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1234 1 0000000000000000 100 0 0 10 0
";

    #[test]
    fn only_listening_sockets_of_the_port_count() {
        assert_eq!(listening_inodes(TABLE, 8080), [20477]);
        assert_eq!(listening_inodes(TABLE, 22), [1234]);
        assert!(listening_inodes(TABLE, 80).is_empty());
        assert!(listening_inodes("sl\n\u{0}\nx y\n", 80).is_empty());
    }

    #[test]
    fn a_listener_is_ours_only_with_our_process() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = server.local_addr().expect("it is bound").port();
        assert!(bind_error(port).is_some());
        assert_eq!(find_listener(port, &[std::process::id()]), Listener::Ours);
        assert_eq!(find_listener(port, &[1]), Listener::Foreign);
        drop(server);
        assert_eq!(find_listener(port, &[std::process::id()]), Listener::None);
        assert!(bind_error(port).is_none());
    }
}
