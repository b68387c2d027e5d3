//! The other tests of this binary, run again in user-mode Linux: on real cgroup v2, v2 as a
//! container or a user with a delegated group sees it, and v1 without any v2.

use std::path::Path;
use std::process::Command;

/// Boots the guest, runs `setup` in a shell there, then this binary by `run "$@"`. Returns what it
/// said, or `None` after a SKIP line.
fn in_guest(test: &str, setup: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = format!("run() {{ \"$@\"; }}; set -e; {setup}; run \"$@\"");
    let output = Command::new(root.join("tests/uml/run.sh"))
        .args(["/bin/bash", "-c", &script, "bash"])
        .arg(std::env::current_exe().unwrap())
        .args(["--nocapture", "--test-threads=1", "--skip", "uml::"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        println!("SKIP {test}: {}", said.trim().replace('\n', " "));
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}{said}", nested(&text));
    Some(text)
}

/// Lines of a test run as part of another's: not to be counted as that one's own.
fn nested(text: &str) -> String {
    text.lines()
        .map(|line| format!("guest: {line}\n"))
        .collect()
}

/// Every test of this binary must have run in the guest, and passed.
fn rerun(test: &str, setup: &str) {
    let Some(text) = in_guest(test, setup) else {
        return;
    };
    let result = text
        .lines()
        .find_map(|l| l.strip_prefix("test result: ok. "));
    let passed = result.and_then(|r| r.split(' ').next()?.parse().ok());
    assert!(passed >= Some(14), "{}", nested(&text));
    let has_skips = text.contains("SKIP");
    assert!(!has_skips, "skipped in the guest:\n{}", nested(&text));
    println!("{test}: {} tests passed in the guest", passed.unwrap_or(0));
}

#[test]
fn on_v2_as_root() {
    rerun("on_v2_as_root", "true");
}

/// A cgroup namespace with processes in its root group: nothing can be made below it until they are
/// moved into a child.
#[test]
fn on_v2_in_a_container() {
    let setup = r#"
        cd /sys/fs/cgroup; echo "+cpu +memory +pids" > cgroup.subtree_control
        mkdir outer; cd outer; echo $$ > cgroup.procs; cd /
        run() {
            unshare --cgroup --mount bash -ec '
                umount /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup
                [ -e /sys/fs/cgroup/cgroup.type ]
                "$@"
                [ -d /sys/fs/cgroup/loadline-supervisor ]' bash "$@"
        }"#;
    rerun("on_v2_in_a_container", setup);
}

/// What `systemd-run --user --scope -p Delegate=yes` gives: a group that belongs to the user.
#[test]
fn on_v2_as_a_user_with_a_delegated_group() {
    let setup = r#"
        cd /sys/fs/cgroup; echo "+cpu +memory +pids" > cgroup.subtree_control
        mkdir -p user/scope; echo "+cpu +memory +pids" > user/cgroup.subtree_control
        chown 1000:1000 user/scope user/scope/cgroup.{procs,threads,subtree_control}
        run() {
            echo $BASHPID > /sys/fs/cgroup/user/scope/cgroup.procs
            exec setpriv --reuid=1000 --regid=1000 --clear-groups "$@"
        }"#;
    rerun("on_v2_as_a_user_with_a_delegated_group", setup);
}

const MOUNT_V1: &str = r#"
        umount /sys/fs/cgroup; mount -t tmpfs cgroup /sys/fs/cgroup
        for c in $controllers; do
            mkdir /sys/fs/cgroup/$c; mount -t cgroup -o $c cgroup /sys/fs/cgroup/$c
        done"#;

/// Killing goes by the freezer here.
#[test]
fn on_v1() {
    let setup = format!("controllers='cpu,cpuacct memory pids freezer'; {MOUNT_V1}");
    rerun("on_v1", &setup);
}

/// Killing goes by pids.max = 0 and a loop here.
#[test]
fn on_v1_without_a_freezer() {
    let setup = format!("controllers='cpu,cpuacct memory pids'; {MOUNT_V1}");
    rerun("on_v1_without_a_freezer", &setup);
}

/// What most containers have.
#[test]
fn a_read_only_file_system_is_refused_with_a_hint() {
    let test = "a_read_only_file_system_is_refused_with_a_hint";
    let setup = "mount -o remount,ro /sys/fs/cgroup";
    if let Some(text) = in_guest(test, setup) {
        let refusal =
            "not permitted to make a cgroup below /sys/fs/cgroup: it is mounted read-only";
        assert!(text.contains(refusal), "{text}");
        assert!(
            text.contains("hint: run loadline on the machine itself"),
            "{text}"
        );
    }
}
