//! Access to files in directories of another user, with no more rights than that user has.
//!
//! Owns the change of rights, for one thread that ends with the task. Whatever a user may have put
//! in the way (a link, a name), root then does nothing that the user could not do. Facts:
//! setresuid(2), "C library/kernel differences": ids belong to threads; capabilities(7), "Effect of
//! user ID changes": without user 0 no capability is effective, so permissions always apply.

use std::io;

use loadline_sys::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use rustix::fs::{Gid, Uid};
use rustix::process::geteuid;

/// Runs `task` with the rights of a user and its group, and no other group. Where loadline already
/// is that user, it just runs. The real and the saved user stay, so the user can neither signal
/// nor trace the thread.
/// Errors: When loadline may not act for that user: it is neither root nor the user itself; when
/// there is no room for one more thread.
pub fn with_rights_of<T: Send>(
    uid: u32,
    gid: u32,
    task: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    if geteuid().as_raw() == uid {
        return Ok(task());
    }
    std::thread::scope(|scope| {
        let other = move || assume_rights(uid, gid).map(|()| task());
        std::thread::Builder::new()
            .spawn_scoped(scope, other)?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Gives this thread the rights. The user comes last: with it goes the right to change groups.
fn assume_rights(uid: u32, gid: u32) -> io::Result<()> {
    set_thread_groups(&[])?;
    set_thread_res_gid(None, Gid::from_raw(gid), None)?;
    Ok(set_thread_res_uid(None, Uid::from_raw(uid), None)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: u32 = 64_998;

    #[test]
    fn a_task_has_the_rights_of_the_user_and_its_caller_keeps_its_own() {
        if !geteuid().is_root() {
            println!(
                "SKIP a_task_has_the_rights_of_the_user_and_its_caller_keeps_its_own: not root"
            );
            return;
        }
        let status = with_rights_of(OTHER, OTHER + 1, || {
            std::fs::read_to_string("/proc/thread-self/status")
        });
        let status = status.expect("root may").expect("every thread has one");
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        // Real, effective, saved, file system.
        assert_eq!(line("Uid:"), Some("\t0\t64998\t0\t64998"));
        assert_eq!(line("Gid:"), Some("\t0\t64999\t0\t64999"));
        assert_eq!(line("Groups:").map(str::trim), Some(""));
        assert_eq!(line("CapEff:"), Some("\t0000000000000000"));
        assert!(geteuid().is_root());
        assert_eq!(with_rights_of(0, 0, || 7).ok(), Some(7));
    }
}
