//! Network interfaces: up.

use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType, socket};

use crate::error::SysError;

/// Sets an interface of the caller's network namespace up (`lo` in a fresh one is down).
/// Errors: [`SysError::InterfaceName`], or what the kernel says: ENODEV, EPERM without
/// CAP_NET_ADMIN.
pub fn set_interface_up(name: &str) -> Result<(), SysError> {
    let mut request = interface_request(name)?;
    let socket =
        socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(|errno| SysError::Call {
            call: "socket(AF_INET)".to_owned(),
            errno,
        })?;
    // The two numbers fit what each C library takes, which differs in width and sign.
    let (read, write) = (
        libc::SIOCGIFFLAGS as libc::Ioctl,
        libc::SIOCSIFFLAGS as libc::Ioctl,
    );
    // SAFETY: SIOCGIFFLAGS reads the name and writes the flags of the given ifreq (netdevice(7));
    // it lives across the call.
    let got = unsafe { libc::ioctl(socket.as_raw_fd(), read, &raw mut request) };
    if got != 0 {
        return Err(SysError::from_last_errno(format!(
            "ioctl(SIOCGIFFLAGS, {name})"
        )));
    }
    // SAFETY: the kernel has just filled the union in as flags, and every bit pattern is a short.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    // IFF_UP is 1: the cast cannot lose anything.
    request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
    // SAFETY: SIOCSIFFLAGS only reads the ifreq, which lives across the call.
    let set = unsafe { libc::ioctl(socket.as_raw_fd(), write, &raw const request) };
    if set != 0 {
        return Err(SysError::from_last_errno(format!(
            "ioctl(SIOCSIFFLAGS, {name})"
        )));
    }
    Ok(())
}

fn interface_request(name: &str) -> Result<libc::ifreq, SysError> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() >= libc::IFNAMSIZ || bytes.contains(&0) {
        return Err(SysError::InterfaceName {
            name: name.to_owned(),
        });
    }
    // SAFETY: ifreq is plain data of integers and a pointer; all zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = from.cast_signed() as libc::c_char;
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_are_refused() {
        for name in ["", "sixteen-bytes-xx", "l\0o"] {
            assert!(
                matches!(set_interface_up(name), Err(SysError::InterfaceName { .. })),
                "{name:?}"
            );
        }
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let error = set_interface_up("nosuchif0").map_err(|e| e.to_string());
        assert!(
            error.as_ref().is_err_and(|e| e.contains("nosuchif0")),
            "{error:?}"
        );
    }
}
