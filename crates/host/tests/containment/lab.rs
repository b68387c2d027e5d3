//! Makes specs of trials with the zoo and runs them through the backend's trait.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loadline_analysis::record::{Configuration, Evidence, Phase, StartEvidence};
use loadline_host::backend::{
    Account, Backend, BackendError, Driven, InstanceSpec, LoadPhase, Network, Observer, Progress,
    Readiness,
};
use loadline_host::{LocalBackend, Options};
use loadline_load::{Model, Plan, RequestSpec};
use loadline_sizing::{Bytes, Cpus};

use crate::oracle::{Traces, assert_clean};

/// A user that nothing but these applications runs as.
pub const UID: u32 = 64_123;

/// Port of every application: each has its own network.
pub const PORT: u16 = 8080;

/// An observer that lets the trial run, or says stop from the n-th question on.
#[derive(Default)]
pub struct Quiet {
    pub stop_after: Option<u32>,
    pub asked: std::cell::Cell<u32>,
}

impl Observer for Quiet {
    fn progress(&mut self, _: Progress) {}

    fn interrupted(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.stop_after
            .is_some_and(|after| self.asked.get() > after)
    }
}

/// A trial as it came out.
pub struct Trial {
    pub start: Result<StartEvidence, BackendError>,
    pub driven: Option<Result<Driven, BackendError>>,
    pub evidence: Evidence,
}

/// A backend with a directory of its own, and what was on the machine before.
pub struct Lab {
    pub backend: LocalBackend,
    pub scratch: tempfile::TempDir,
    /// What an application may take to end; only one that does not end waits for all of it.
    pub grace: Duration,
    count: u32,
    before: Traces,
}

impl Lab {
    pub fn new() -> Self {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let options = Options {
            scratch_root: Some(scratch.path().to_owned()),
            ..Options::default()
        };
        let backend = LocalBackend::new(options).expect("the runner has tried it");
        let mut lab = Self {
            before: Traces::now(UID, std::process::id(), scratch.path()),
            backend,
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
    pub fn spec(&mut self, arguments: &[&str]) -> InstanceSpec {
        self.count += 1;
        let name = format!("containment-{}-{}", std::process::id(), self.count);
        spec(self.scratch.path(), &name, arguments)
    }

    /// Takes a trial through its phases; whatever happens, it is stopped.
    pub fn run(&mut self, spec: &InstanceSpec, load: Option<&LoadPhase>) -> Trial {
        let mut observer = Quiet::default();
        let mut instance = self.backend.prepare(spec).expect("it can be prepared");
        // A JVM takes several seconds in user-mode Linux, and some trials start two.
        let start = instance.start(Duration::from_secs(300), &mut observer);
        let is_ready = start.as_ref().is_ok_and(|start| start.ready.is_some());
        let driven = load
            .filter(|_| is_ready)
            .map(|load| instance.drive(load, &mut observer));
        let evidence = instance.stop(self.grace, &mut observer);
        Trial {
            start,
            driven,
            evidence,
        }
    }

    pub fn traces(&self) -> Traces {
        Traces::now(UID, std::process::id(), self.scratch.path())
    }

    /// Asserts that nothing is left. Threads that nobody waits for close their descriptors a
    /// moment later.
    pub fn assert_clean(&self) {
        let begin = Instant::now();
        while self.traces() != self.before && begin.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_clean(&self.before, &self.traces());
    }
}

/// A spec with half a CPU and 64 MiB: enough for any of the zoo, too little for its greed.
pub fn spec(scratch: &Path, name: &str, arguments: &[&str]) -> InstanceSpec {
    let program = std::env::current_exe().expect("this program");
    let command = [program.display().to_string(), "zoo".to_owned()];
    InstanceSpec {
        trial: name.to_owned(),
        configuration: configuration(),
        command: command
            .into_iter()
            .chain(arguments.iter().map(|a| (*a).to_owned()))
            .collect(),
        env: BTreeMap::from([("ZOO".to_owned(), "1".to_owned())]),
        directory: PathBuf::from("/"),
        readiness: Readiness::Http {
            port: PORT,
            path: "/".to_owned(),
        },
        network: Network::Own,
        account: Account { uid: UID, gid: UID },
        scratch: scratch.join(name),
        samples: scratch.join(format!("{name}.samples")),
        gc_log: None,
        log_line: None,
        keep: None,
        sampling: Default::default(),
    }
}

fn configuration() -> Configuration {
    Configuration {
        label: "zoo".to_owned(),
        cpu: Some(Cpus::from_millis(500)),
        cpu_period: Duration::from_millis(100),
        cpuset: None,
        cpu_burst: None,
        instances: 1,
        neighbour_threads: None,
        cpu_shares: None,
        memory: Some(Bytes::from_mib(64)),
        pids: Some(200),
        jdk: None,
        jvm_options: Vec::new(),
        args: Vec::new(),
        rate: None,
        env: BTreeMap::new(),
        cache: None,
    }
}

/// An open-model measure phase.
pub fn load(rate: f64, length: Duration) -> LoadPhase {
    LoadPhase {
        phase: Phase::Measure,
        plan: Plan {
            connections: 8,
            timeout: Duration::from_secs(2),
            drain: Duration::from_secs(2),
            ..Plan::new(
                vec![SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))],
                RequestSpec::get("/"),
                Model::constant(rate, length),
            )
        },
    }
}
