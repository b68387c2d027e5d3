//! Which address of the loopback a service listens at.
//!
//! Owns the answer for the network of the calling thread, without a connection that the service would
//! count. Facts: proc_net(5); tcp6 has an address as four words in the machine's byte order.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `::1` as tcp6 has it.
const SIX: &str = "00000000000000000000000001000000";

/// Where a service on this port is reached: `::1` where it listens there alone, else 127.0.0.1; `None`
/// where nothing listens.
pub fn listening_loopback(port: u16) -> Option<IpAddr> {
    let read = |table| fs::read_to_string(format!("/proc/thread-self/net/{table}"));
    let tables = ["tcp", "tcp6"].map(|table| read(table).unwrap_or_default());
    listening_in(&tables, port)
}

/// Columns: sl, local address, remote address, state (0A: LISTEN).
fn listening_in(tables: &[String; 2], port: u16) -> Option<IpAddr> {
    let address = |line: &'_ str| {
        let mut fields = line.split_ascii_whitespace();
        let (address, at) = fields.nth(1)?.rsplit_once(':')?;
        let is_port = u16::from_str_radix(at, 16).ok()? == port;
        (is_port && fields.nth(1)? == "0A").then(|| address == SIX)
    };
    let lines = tables.iter().flat_map(|table| table.lines());
    let is_six = lines.filter_map(address);
    let is_six = is_six.reduce(|all, next| all && next)?;
    Some(if is_six {
        Ipv6Addr::LOCALHOST.into()
    } else {
        Ipv4Addr::LOCALHOST.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_service_on_ipv6_alone_is_found_there() {
        let at = |address: IpAddr| {
            let listener = TcpListener::bind((address, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let found = listening_loopback(port);
            drop(listener);
            (found, listening_loopback(port))
        };
        let (four, six) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
        assert_eq!(at(four), (Some(four), None));
        assert_eq!(at(six), (Some(six), None));
        // On all addresses it is reached by either.
        assert_eq!(at(Ipv6Addr::UNSPECIFIED.into()), (Some(four), None));
    }

    #[test]
    fn a_service_on_both_is_asked_by_the_first() {
        let four = "sl\n 0: 0100007F:1F90 00000000:0000 0A\n 1: 0100007F:0016 0100007F:B1C6 01\n";
        let six = format!("sl\n 0: {SIX}:1F90 {SIX}:0000 0A\n 1: {SIX}:0016 {SIX}:B1C6 0A\n");
        let tables = [four.to_owned(), six];
        assert_eq!(
            listening_in(&tables, 8080),
            Some(Ipv4Addr::LOCALHOST.into())
        );
        assert_eq!(listening_in(&tables, 22), Some(Ipv6Addr::LOCALHOST.into()));
        assert_eq!(listening_in(&tables, 80), None);
    }
}
