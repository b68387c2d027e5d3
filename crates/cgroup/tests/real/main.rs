//! The crate against the kernel of this machine: v1, v2 or hybrid, whatever it is. Needs the
//! right to make groups; without it every test prints a SKIP line. The same binary runs again on
//! other kinds of cgroups inside user-mode Linux, see uml.rs.

// Helpers of tests, too, may fail by a panic and say SKIP.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod groups;
mod host;
mod sampler;
mod uml;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use loadline_cgroup::{CgroupLayout, ControlGroup, GroupName};

/// More than anything here takes, also on a busy machine; reached only by a failure.
const SOON: Duration = Duration::from_secs(60);

/// The layout, or a SKIP line and nothing.
fn layout(test: &str) -> Option<CgroupLayout> {
    let found = CgroupLayout::detect(Path::new("/sys/fs/cgroup"), Path::new("/proc"))
        .and_then(|layout| layout.check_permission().map(|()| layout));
    match found {
        Ok(layout) => Some(layout),
        Err(error) => {
            let hint = error.suggested_fix().map(|hint| format!(" hint: {hint}"));
            let why = format!("{error}{}", hint.unwrap_or_default());
            println!("SKIP {test}: {}", why.replace('\n', " "));
            None
        }
    }
}

/// A group that is killed and removed when the test ends, also by a panic.
struct Scoped(ControlGroup);

impl Scoped {
    fn new(layout: &CgroupLayout) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let trial = format!("test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let name = GroupName::new(Path::new("/proc"), &trial).unwrap();
        Self(ControlGroup::create_group(layout, &name.to_string()).unwrap())
    }

    /// Starts a shell in the group.
    fn sh(&self, script: &str) -> Child {
        let mut join = String::new();
        for file in self.0.join_files() {
            join += &format!("echo 0 > {} || exit 99\n", file.display());
        }
        Command::new("sh")
            .args(["-c", &(join + script)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }
}

impl Drop for Scoped {
    fn drop(&mut self) {
        let ended = self
            .0
            .kill_processes(SOON)
            .and_then(|_| self.0.remove_dirs(SOON));
        if !std::thread::panicking() {
            ended.unwrap();
            assert!(!self.0.exists(), "{} is left", self.0.group_name());
        }
    }
}

/// Waits until `condition` holds.
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < SOON, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}
