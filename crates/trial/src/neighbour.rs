//! A busy neighbour: threads that take every CPU they get, in a cgroup next to the application's.
//!
//! Owns the process, `loadline neighbour`, and its end. Relative shares have no effect while the
//! CPUs are free: experiments on them need a competitor.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use loadline_cgroup::{CgroupLimits, ControlGroup, GroupName};
use loadline_sys::set_parent_process_death_signal;
use rustix::process::Signal;

use crate::group::TrialGroup;
use crate::halt::{self, HaltReason};
use crate::site::Site;
use crate::spawner::GuardedChild;
use crate::{cpus, spawner};

pub(crate) struct BusyNeighbour {
    /// First, so that it is killed before its group is removed.
    child: GuardedChild,
    group: TrialGroup,
}

impl BusyNeighbour {
    /// Starts this many threads on the application's CPUs, with the default weight of a group.
    pub(crate) fn start_neighbour(
        site: &Site,
        trial: &str,
        threads: u32,
        own: &[u32],
    ) -> Result<Self, HaltReason> {
        let making = |error| halt::cgroup_refusal("making the neighbour's cgroup", &error);
        let trial = format!("{trial}-neighbour");
        let name = GroupName::new(Path::new("/proc"), &trial).map_err(making)?;
        let limits = CgroupLimits::default();
        let group = TrialGroup::create_limited(&site.layout, &name.to_string(), &limits);
        let group = group.map_err(making)?;
        let mut command = Command::new(&site.options.program);
        let (threads, cpus) = (threads.to_string(), cpus::format_cpu_list(own));
        command.args(["neighbour", &threads, &cpus]);
        command.stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child =
            spawner::spawn_command(command).map_err(halt::step_failed("starting the neighbour"))?;
        let child = GuardedChild(child);
        let mut neighbour = Self { child, group };
        let joined = neighbour.join_group();
        joined.map_err(halt::step_failed("starting the neighbour"))?;
        Ok(neighbour)
    }

    pub(crate) fn own_group(&self) -> &ControlGroup {
        self.group.as_group()
    }

    fn join_group(&mut self) -> io::Result<()> {
        let pid = self.child.0.id().to_string();
        for file in self.group.as_group().join_files() {
            std::fs::write(file, &pid)?;
        }
        match &mut self.child.0.stdin {
            Some(stdin) => stdin.write_all(b"\n"),
            None => Ok(()),
        }
    }
}

/// The process itself: waits for a byte, then keeps `threads` threads busy on these CPUs until its
/// standard input ends. Dies with the loadline that started it. Errors: What the kernel says to
/// reading and to starting threads.
pub fn run_neighbour(threads: u32, own: &[u32], mut input: impl Read) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    input.read_exact(&mut [0])?;
    cpus::pin_this_thread(own);
    for _ in 0..threads {
        let thread = std::thread::Builder::new().name("neighbour".to_owned());
        thread.spawn(burn_cpu)?;
    }
    io::copy(&mut input, &mut io::sink()).map(drop)
}

fn burn_cpu() {
    loop {
        std::hint::spin_loop();
    }
}
