//! Trials without root: loadline enters a new user namespace, in which it may make all other
//! namespaces and enter them, as the probe and the load generator must.
//!
//! Owns that step. In the namespace loadline is the same user with the same files; it gains rights
//! over namespaces made from there, and no others. Child processes inherit them; the application
//! drops them like root's. Facts: user_namespaces(7), capabilities(7) "Ambient".

use std::fs;

use loadline_protocol::RunRefusal;
use loadline_sys::{
    CapabilitySet, Namespaces, capabilities, configure_capability_in_ambient_set, set_capabilities,
    unshare,
};
use rustix::io::Errno;

const HINT: &str = "run as root, or allow user namespaces: sysctl -w user.max_user_namespaces=10000, on Ubuntu also kernel.apparmor_restrict_unprivileged_userns=0; in a container they need a seccomp profile that allows unshare and mount";

/// Enters the namespace, where it is needed: not for root, and only once. The process must have
/// one thread.
pub fn enter_user_namespace() -> Result<(), RunRefusal> {
    if rustix::process::geteuid().is_root() || may_make_namespaces() {
        return Ok(());
    }
    let what = "making a user namespace, to run trials without root";
    enter_own().map_err(|why| RunRefusal::new(what, why, HINT))
}

fn may_make_namespaces() -> bool {
    let sets = capabilities(None);
    sets.is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

fn enter_own() -> Result<(), String> {
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    unshare(Namespaces {
        user: true,
        ..Namespaces::default()
    })
    .map_err(|error| error.to_string())?;
    // The own user and group, and only them.
    for (file, text) in [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("{uid} {uid} 1")),
        ("/proc/self/gid_map", format!("{gid} {gid} 1")),
    ] {
        fs::write(file, &text).map_err(|error| format!("writing `{text}` to {file}: {error}"))?;
    }
    hand_down().map_err(|errno| format!("keeping rights over an exec: {errno}"))
}

/// Without this an exec by a user other than root ends with no rights.
fn hand_down() -> Result<(), Errno> {
    let mut sets = capabilities(None)?;
    sets.inheritable = sets.permitted;
    let permitted = sets.permitted;
    set_capabilities(None, sets)?;
    // By bit: a kernel may know more rights than this program has names for.
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if permitted.contains(capability) {
            configure_capability_in_ambient_set(capability, true)?;
        }
    }
    Ok(())
}
