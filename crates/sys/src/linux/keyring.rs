//! A session keyring of one's own.

use crate::error::SysError;

/// Leaves the session keyring of whoever called loadline for a new, empty one: keys in it (Kerberos
/// tickets, disk and network secrets) stay with the user. A kernel without keyrings and a container
/// that allows no such call have none to leave.
/// Errors: EDQUOT when the user has too many keys. Source: keyctl(2), session-keyring(7).
pub fn new_session_keyring() -> Result<(), SysError> {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: the null pointer asks for a keyring without a name; no memory is read or written.
    let keyring = unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            JOIN_SESSION_KEYRING,
            std::ptr::null::<u8>(),
        )
    };
    if keyring >= 0 {
        return Ok(());
    }
    let error = SysError::from_last_errno("keyctl(KEYCTL_JOIN_SESSION_KEYRING)");
    match error.errno() {
        Some(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => Ok(()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session_keyring() -> libc::c_long {
        const GET_KEYRING_ID: libc::c_long = 0;
        const SESSION_KEYRING: libc::c_long = -3;
        // SAFETY: numbers only.
        unsafe { libc::syscall(libc::SYS_keyctl, GET_KEYRING_ID, SESSION_KEYRING, 1) }
    }

    #[test]
    fn the_new_keyring_is_another() {
        let seen = std::thread::spawn(|| {
            let before = session_keyring();
            new_session_keyring().expect("no quota is reached");
            (before, session_keyring())
        });
        let (before, after) = seen.join().expect("a thread");
        if before < 0 {
            println!("SKIP the_new_keyring_is_another: this kernel or container has no keyrings");
            return;
        }
        assert_ne!(before, after);
    }
}
