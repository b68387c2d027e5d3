//! Who uses the machine's CPUs, between two looks at /proc.
//!
//! Owns the readings, no thresholds: the runner decides how much is too much for a trial.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::file;
use crate::host::{MachineCpuTimes, from_ticks};
use crate::proc_text::stat_field;

/// Clock ticks of 10 ms say little about less.
const SHORTEST: Duration = Duration::from_millis(900);
/// A look before that belongs to an earlier wait.
const LONGEST: Duration = Duration::from_secs(10);

/// Use of the machine's CPUs between two looks, steal included.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuUse {
    /// Of all CPUs, in [0, 1].
    pub share: f64,
    pub busiest: Option<BusyProgram>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct BusyProgram {
    pub name: String,
    pub pid: u32,
    /// Of all CPUs, in [0, 1].
    pub share: f64,
}

#[derive(Debug)]
pub struct CpuWatch {
    proc_root: PathBuf,
    last: Option<CpuReading>,
}

#[derive(Debug)]
struct CpuReading {
    at: Instant,
    machine: MachineCpuTimes,
    programs: HashMap<u32, Duration>,
}

impl CpuWatch {
    pub fn new(proc_root: &Path) -> Self {
        Self {
            proc_root: proc_root.to_owned(),
            last: None,
        }
    }

    /// `None` at the first look, and for a second after each; then nothing is known yet.
    pub fn look(&mut self) -> Option<CpuUse> {
        let since = self.last.as_ref().map(|last| last.at.elapsed());
        if since.is_some_and(|since| since < SHORTEST) {
            return None;
        }
        let now = CpuReading {
            at: Instant::now(),
            machine: MachineCpuTimes::read(&self.proc_root).ok()?,
            programs: program_times(&self.proc_root),
        };
        let last = self.last.replace(now);
        let last = last.filter(|last| last.at.elapsed() < LONGEST)?;
        let now = self.last.as_ref()?;
        let passed = now.machine.since(last.machine);
        let all = passed.total_time().as_secs_f64();
        let share = |time: Duration| time.as_secs_f64() / all;
        let used = |(pid, time): (&u32, &Duration)| {
            let before = last.programs.get(pid)?;
            Some((time.saturating_sub(*before), *pid))
        };
        let most = now.programs.iter().filter_map(used).max();
        let named = |(time, pid)| Some((program_name(&self.proc_root, pid)?, time, pid));
        let busiest = most.filter(|(time, _)| !time.is_zero()).and_then(named);
        (all > 0.0).then(|| CpuUse {
            share: share(passed.busy + passed.steal),
            busiest: busiest.map(|(name, time, pid)| BusyProgram {
                name,
                pid,
                share: share(time),
            }),
        })
    }
}

/// CPU time of each process but this one. Those that end meanwhile are left out.
fn program_times(proc_root: &Path) -> HashMap<u32, Duration> {
    let entries = fs::read_dir(proc_root).into_iter().flatten().flatten();
    let time = |entry: fs::DirEntry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = file::read(&entry.path().join("stat")).ok()?;
        // Without its children: those that ended would count whole, all at once.
        let ticks = stat_field(&stat, 14)?.checked_add(stat_field(&stat, 15)?)?;
        (pid != std::process::id()).then_some((pid, from_ticks(ticks)))
    };
    entries.filter_map(time).collect()
}

fn program_name(proc_root: &Path, pid: u32) -> Option<String> {
    let name = file::read(&proc_root.join(pid.to_string()).join("comm")).ok()?;
    Some(name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_program_is_named_with_its_share() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let at = |idle: u64, chrome: u64, sshd: u64| {
            let busy = chrome + sshd;
            put(
                "stat",
                &format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 0 0 0 0\n"),
            );
            let stat = |name, ticks| format!("7 ({name}) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20");
            put("4242/stat", &stat("chrome", chrome));
            put("4242/comm", "chrome\n");
            put("7/stat", &stat("sshd", sshd));
            put("7/comm", "sshd\n");
        };
        let mut watch = CpuWatch::new(root.path());
        at(1000, 50, 10);
        assert_eq!(watch.look(), None, "nothing to compare with");
        assert_eq!(watch.look(), None, "too soon");
        at(1138, 112, 10);
        std::thread::sleep(SHORTEST);
        let seen = watch.look().expect("a second has passed");
        assert!((seen.share - 0.31).abs() < 1e-9, "{seen:?}");
        let busiest = seen.busiest.expect("a program");
        assert_eq!((busiest.name.as_str(), busiest.pid), ("chrome", 4242));
        assert!((busiest.share - 0.31).abs() < 1e-9);
    }
}
