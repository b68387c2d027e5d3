//! The application's account.
//!
//! Owns its choice. Never looks at an image, which sets its own user.

use loadline_experiment::Experiment;
use loadline_protocol::Account;

/// The application's account where loadline is root: no account of a distribution has this number.
const APPLICATION_UID: u32 = 64_999;

pub fn sudo_caller() -> Option<Account> {
    let id = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    let is_root = rustix::process::geteuid().is_root();
    let (uid, gid) = id("SUDO_UID").zip(id("SUDO_GID"))?;
    (is_root && uid != 0 && gid != 0).then_some(Account { uid, gid })
}

/// An account that owns nothing, also under sudo: the caller's own would let the application read
/// the caller's files and speak to the caller's session. Without root there is only the caller's.
pub fn account(experiment: &Experiment) -> Account {
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    // A cluster does not know the calling user.
    let is_here = uid != 0 && experiment.cluster.is_none();
    let own = is_here.then_some(Account { uid, gid });
    experiment.app.account.or(own).unwrap_or(Account {
        uid: APPLICATION_UID,
        gid: APPLICATION_UID,
    })
}
