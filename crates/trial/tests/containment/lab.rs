//! Makes orders of trials with the zoo and has `trial-part` carry them out.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use loadline_analysis::record::{Configuration, Evidence, LoadEvidence, StartEvidence, TrialPhase};
use loadline_load::{LoadModel, LoadPlan, RequestSpec};
use loadline_protocol::log::{EventLogReader, LogEntry};
use loadline_protocol::{
    Account, AppSpec, LoadPhase, NetworkMode, Readiness, TrialEnding, TrialEvent, TrialOrder,
};
use loadline_sizing::{Bytes, Cpus};
use loadline_trial::part::PARENT;
use loadline_trial::{Site, SiteOptions};
use rustix::process::{Pid, Signal, kill_process};

use crate::oracle::Traces;

/// A user that nothing but these applications runs as.
pub const UID: u32 = 64_123;

/// Port of every application: each has its own network.
pub const PORT: u16 = 8080;

#[derive(Clone)]
pub struct Spec {
    order: TrialOrder,
    pub command: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub directory: PathBuf,
    pub log: PathBuf,
}

impl Deref for Spec {
    type Target = TrialOrder;

    fn deref(&self) -> &TrialOrder {
        &self.order
    }
}

impl DerefMut for Spec {
    fn deref_mut(&mut self) -> &mut TrialOrder {
        &mut self.order
    }
}

impl Spec {
    fn order(&self) -> TrialOrder {
        let app = AppSpec::Command {
            command: self.command.clone(),
            env: self.env.clone(),
            directory: self.directory.clone(),
        };
        TrialOrder {
            app,
            ..self.order.clone()
        }
    }

    /// Starts `trial-part`, as loadline does.
    pub fn start(&self) -> Part {
        let log = File::options()
            .read(true)
            .append(true)
            .create_new(true)
            .open(&self.log)
            .expect("a new file");
        let mut command = Command::new("/proc/self/exe");
        command
            .arg("trial-part")
            .env_clear()
            .env("LOADLINE_TRIAL", &self.trial)
            .env(PARENT, std::process::id().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::from(log));
        let mut child = loadline_trial::spawn_command(command).expect("it starts");
        let order = serde_json::to_vec(&self.order()).expect("JSON");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(&order).expect("it reads its order");
        Part {
            child,
            log: EventLogReader::new(File::open(&self.log).expect("its log")),
        }
    }
}

/// A running `trial-part`.
pub struct Part {
    pub child: Child,
    log: EventLogReader<File>,
}

impl Part {
    /// The next event that is of interest; `None` when the process has ended without.
    pub fn until(&mut self, wanted: impl Fn(&TrialEvent) -> bool) -> Option<TrialEvent> {
        loop {
            let ended = self.child.try_wait().expect("a child").is_some();
            while let Some(record) = self.log.next_entry().expect("its log is whole") {
                match record {
                    LogEntry::Event(event) if wanted(&event) => return Some(event),
                    _ => {}
                }
            }
            if ended {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for its end.
    pub fn end(mut self) -> Option<TrialEnding> {
        let last = self.until(|event| matches!(event, TrialEvent::Ended(_)));
        self.child.wait().expect("a child");
        match last {
            Some(TrialEvent::Ended(ending)) => Some(ending),
            _ => None,
        }
    }

    /// Waits until a phase has begun.
    pub fn until_phase(&mut self, wanted: TrialPhase) {
        let begun =
            self.until(|e| matches!(e, TrialEvent::Phase { phase, .. } if *phase == wanted));
        assert!(begun.is_some(), "it ended before {wanted:?}");
    }
}

/// A trial as it came out.
pub struct Trial {
    pub start: StartEvidence,
    pub load: Vec<LoadEvidence>,
    pub evidence: Evidence,
}

pub struct Lab {
    pub site: Site,
    pub scratch: tempfile::TempDir,
    /// Time for an application to end; only a hanging one uses all this time.
    pub grace: Duration,
    count: u32,
    before: Traces,
}

impl Lab {
    pub fn new() -> Self {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let options = SiteOptions {
            scratch_root: Some(scratch.path().to_owned()),
            ..SiteOptions::default()
        };
        let site = Site::detect_site(options).expect("the runner has tried it");
        let mut lab = Self {
            before: Traces::now(UID, scratch.path()),
            site,
            scratch,
            grace: Duration::from_secs(30),
            count: 0,
        };
        // What the first trial makes once for all (the spawning thread) is no leak.
        let spec = lab.spec(&["exit"]);
        lab.run(&spec, None);
        lab.before = lab.traces();
        lab
    }

    /// A trial of the zoo: `arguments` are the mode and its settings.
    pub fn spec(&mut self, arguments: &[&str]) -> Spec {
        self.count += 1;
        let name = format!("containment-{}-{}", std::process::id(), self.count);
        let mut spec = spec(self.scratch.path(), &name, arguments);
        spec.stop_grace = self.grace;
        spec
    }

    /// Takes a trial through its phases.
    pub fn run(&mut self, spec: &Spec, load: Option<&LoadPhase>) -> Trial {
        let mut spec = spec.clone();
        spec.load = load.into_iter().cloned().collect();
        match spec.start().end() {
            Some(TrialEnding::Measured(evidence)) => Trial {
                start: evidence.start.clone(),
                load: evidence.load.clone(),
                evidence: *evidence,
            },
            other => panic!("it was not measured: {other:?}"),
        }
    }

    pub fn traces(&self) -> Traces {
        let mut now = Traces::now(UID, self.scratch.path());
        // Mounts that went meanwhile existed before the first trial: a mount goes with its
        // directory, also another container's.
        now.mounts.extend(self.before.mounts.iter().cloned());
        now
    }

    /// Asserts that nothing is left.
    pub fn assert_clean(&self) {
        self.assert_clean_after("a trial");
    }

    /// The same for a named trial. Unjoined threads close their descriptors a moment later.
    pub fn assert_clean_after(&self, trial: &str) {
        let begin = Instant::now();
        while self.traces() != self.before && begin.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(self.before, self.traces(), "{trial} left something behind");
    }
}

/// Stops the application of a trial for this length, `after` seconds after it has been found.
pub fn stop_for(trial: &str, after: u64, length: Duration) {
    let applications = || {
        let all = std::fs::read_dir("/proc").expect("proc").flatten();
        let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        ids.filter(|id| {
            let read =
                |file| std::fs::read_to_string(format!("/proc/{id}/{file}")).unwrap_or_default();
            read("cgroup").contains(&format!("{trial}\n")) && read("cmdline").contains("zoo\0serve")
        })
        .collect::<Vec<_>>()
    };
    std::thread::sleep(Duration::from_secs(after));
    for signal in [Signal::STOP, Signal::CONT] {
        for id in applications() {
            if let Some(pid) = Pid::from_raw(id) {
                // One that has ended meanwhile is the test's to find.
                let _ = kill_process(pid, signal);
            }
        }
        if signal == Signal::STOP {
            std::thread::sleep(length);
        }
    }
}

/// A spec with half a CPU and 64 MiB: enough for any of the zoo, too little for its greed.
pub fn spec(scratch: &Path, name: &str, arguments: &[&str]) -> Spec {
    let program = std::env::current_exe().expect("this program");
    let command = [program.display().to_string(), "zoo".to_owned()];
    let command = command.into_iter();
    let app = AppSpec::Command {
        command: Vec::new(),
        env: BTreeMap::new(),
        directory: PathBuf::new(),
    };
    Spec {
        command: command
            .chain(arguments.iter().map(|a| (*a).to_owned()))
            .collect(),
        env: BTreeMap::from([("ZOO".to_owned(), "1".to_owned())]),
        directory: PathBuf::from("/"),
        log: scratch.join(format!("{name}.log")),
        order: TrialOrder {
            trial: name.to_owned(),
            configuration: configuration(),
            app,
            dependencies: Vec::new(),
            kept: None,
            stubs: Vec::new(),
            secrets: Vec::new(),
            readiness: Readiness::Http {
                port: PORT,
                path: "/".to_owned(),
            },
            network: NetworkMode::Own,
            account: Account { uid: UID, gid: UID },
            scratch: scratch.join(name),
            hidden: Vec::new(),
            gc_log: None,
            log_line: None,
            hand_over: Vec::new(),
            give_up: None,
            sampling: Default::default(),
            // A JVM takes several seconds in user-mode Linux, and some trials start two.
            start_deadline: Duration::from_secs(300),
            load: Vec::new(),
            stop_grace: Duration::from_secs(30),
            soak: None,
            memory_study: None,
            as_shipped: false,
            generators: None,
            load_command: None,
            backlog: None,
            metrics: None,
            run: None,
        },
    }
}

fn configuration() -> Configuration {
    Configuration {
        label: "zoo".to_owned(),
        cpu: Some(Cpus::from_millis(500)),
        memory: Some(Bytes::from_mib(64)),
        pids: Some(200),
        shm: Some(Bytes::from_mib(96)),
        ..Configuration::default()
    }
}

/// An open-model measure phase.
pub fn load(rate: f64, length: Duration) -> LoadPhase {
    LoadPhase {
        phase: TrialPhase::Measure,
        plan: LoadPlan {
            connections: 8,
            timeout: Duration::from_secs(2),
            drain: Duration::from_secs(2),
            ..LoadPlan::new(
                vec![SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))],
                RequestSpec::for_get("/"),
                LoadModel::at_constant_rate(rate, length),
            )
        },
    }
}
