//! The proxy of a trial: `loadline proxy-part`, between the application and its dependencies.
//!
//! Owns the process, its cgroup and what it is told. It stands on the CPUs of the load generator,
//! with the same weight: neither may wait for a dependency. What it does to bytes is
//! `loadline-proxy`'s; how it comes to listen where a dependency would is told there, in `network`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use loadline_analysis::record::{LinkEvidence, OutageEvidence, ProxyEvidence, StubEvidence};
use loadline_cgroup::{Controller, Group, GroupName, Limits};
use loadline_proxy::part::{Answer, Begin, Front, LinkOrder, Order, Report, StubReport};
use loadline_proxy::stub::StubOrder;
use loadline_proxy::{Span, Toxic};
use loadline_sizing::Bytes;
use loadline_trial::{Proxied, Stub};
use rustix::process::{
    Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit,
};
use std::os::unix::process::CommandExt;

use crate::container::{Namespace, Net};
use crate::cpus::{self, CpuPlan};
use crate::group::TrialGroup;
use crate::halt::{self, Halt, refused};
use crate::instance::GENERATOR_SHARES;
use crate::output::plain;
use crate::site::Site;
use crate::spawner;

/// Memory that the proxy may take, in bytes, the kernel's for it included: it holds 512 MiB back at
/// most.
const MEMORY: u64 = 2 << 30;

/// An order is carried out in microseconds; a process that takes longer is not there any more.
const ANSWER: Duration = Duration::from_secs(10);

/// Of its own complaint, so much is kept.
const COMPLAINT: u64 = 4096;

/// The process itself, `loadline proxy-part`: dies with the loadline that started it.
///
/// # Errors
/// As [`loadline_proxy::part::run`].
pub fn proxy_part(orders: impl BufRead + std::os::fd::AsFd, answers: impl Write) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let allowed = getrlimit(Resource::Data).maximum.unwrap_or(u64::MAX);
    let most = Some(MEMORY.min(allowed));
    let most = Rlimit {
        current: most,
        maximum: most,
    };
    setrlimit(Resource::Data, most)?;
    loadline_proxy::part::run(orders, answers)
}

/// When something is wrong on a schedule on the way to the dependencies of a trial.
pub(crate) fn outages(order: &loadline_trial::Order) -> Vec<OutageEvidence> {
    let of = |(name, toxics): (&String, &[Toxic])| {
        let name = name.clone();
        let scheduled = toxics
            .iter()
            .filter_map(|toxic| Some((toxic.span?, toxic.effect.to_string())));
        let outage = move |(span, what): (Span, String)| OutageEvidence {
            dependency: name.clone(),
            what,
            from: span.at,
            to: span.end(),
        };
        scheduled.map(outage).collect::<Vec<_>>()
    };
    let proxied = order.dependencies.iter();
    let proxied = proxied.filter_map(|d| Some((&d.name, d.proxied.as_ref()?.toxics.as_slice())));
    let stubs = order
        .stubs
        .iter()
        .map(|stub| (&stub.name, stub.toxics.as_slice()));
    let mut all: Vec<_> = proxied.chain(stubs).flat_map(of).collect();
    all.sort_by_key(|outage| outage.from);
    all
}

/// The running proxy; dropping it kills it, then its group goes.
pub(crate) struct Proxy {
    child: Child,
    orders: Option<ChildStdin>,
    answers: Receiver<Answer>,
    group: TrialGroup,
    /// The application's network.
    front: Net,
    evidence: ProxyEvidence,
    /// What was counted last, by link, with the names of their dependencies.
    links: Vec<(String, LinkEvidence)>,
    /// Names of its stubs.
    stubs: Vec<String>,
    in_window: bool,
}

/// What was measured of one that has ended.
pub(crate) struct Ended {
    pub(crate) proxy: ProxyEvidence,
    /// By the name of its dependency.
    pub(crate) links: Vec<(String, LinkEvidence)>,
    /// By its name.
    pub(crate) stubs: Vec<(String, StubEvidence)>,
}

impl Proxy {
    /// Starts it in this network, which it makes where there is none.
    ///
    /// # Errors
    /// [`Halt`]; what was made is gone again.
    pub(crate) fn start(
        site: &Site,
        trial: &str,
        plan: &CpuPlan,
        front: &Net,
    ) -> Result<Self, Halt> {
        let group = group(site, trial)?;
        let mut command = Command::new(&site.options.program);
        command
            .arg("proxy-part")
            .env_clear()
            .env("LOADLINE_TRIAL", trial)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = spawner::spawn(command).map_err(halt::step("starting the proxy"))?;
        let (told, answers) = channel();
        if let Some(stdout) = child.stdout.take() {
            let read = move || {
                let lines = BufReader::new(stdout).lines().map_while(Result::ok);
                let all = lines.map_while(|line| serde_json::from_str(&line).ok());
                // Nobody who waits for an answer: the trial is over.
                all.for_each(|answer| drop(told.send(answer)));
            };
            let thread = std::thread::Builder::new().name("proxy".to_owned());
            let started = thread.spawn(read);
            started.map_err(halt::step("starting a thread"))?;
        }
        let orders = child.stdin.take();
        let own = &plan.generator;
        let mut proxy = Self {
            child,
            orders,
            answers,
            group,
            front: front.clone(),
            evidence: ProxyEvidence {
                cpus: cpus::list(own),
                ..ProxyEvidence::default()
            },
            links: Vec::new(),
            stubs: Vec::new(),
            in_window: false,
        };
        proxy.join()?;
        let begin = Begin {
            front: match front {
                Net::Host => Front::Host,
                Net::Own => Front::Own,
                Net::Of(namespace) => Front::Of(namespace.path.clone()),
            },
            cpus: own.clone(),
        };
        let what = "standing before the dependencies";
        match (proxy.ask(&begin)?, front) {
            (Answer::Standing { network: path }, Net::Own) => {
                let container = None;
                proxy.front = Net::Of(Namespace { path, container });
            }
            (Answer::Standing { .. }, _) => {}
            (other, _) => done(other, what)?,
        }
        Ok(proxy)
    }

    /// Puts it into its own group before it gets its first order.
    fn join(&self) -> Result<(), Halt> {
        for file in self.group.group().join_files() {
            let moved = std::fs::write(file, self.child.id().to_string());
            moved.map_err(halt::step("moving the proxy into its cgroup"))?;
        }
        Ok(())
    }

    /// The application's network.
    pub(crate) fn network(&self) -> Net {
        self.front.clone()
    }

    /// Its cgroup: what it uses is part of the trial, not noise.
    pub(crate) fn group(&self) -> &Group {
        self.group.group()
    }

    /// Listens for a dependency that is in this network of its own.
    ///
    /// # Errors
    /// [`Halt::Refused`] where it cannot.
    pub(crate) fn link(&mut self, name: &str, proxied: &Proxied, behind: &Net) -> Result<(), Halt> {
        let network = behind.path().unwrap_or(Path::new("/proc/self/ns/net"));
        let order = Order::Link(LinkOrder {
            name: name.to_owned(),
            port: proxied.port,
            network: network.to_owned(),
            toxics: proxied.toxics.clone(),
            seed: proxied.seed,
        });
        self.done(&order, "standing before it")?;
        let link = LinkEvidence {
            toxics: proxied.toxics.iter().map(ToString::to_string).collect(),
            ..LinkEvidence::default()
        };
        self.links.push((name.to_owned(), link));
        Ok(())
    }

    /// Answers in the place of a dependency.
    ///
    /// # Errors
    /// [`Halt::Refused`] where it cannot.
    pub(crate) fn stub(&mut self, stub: &Stub) -> Result<(), Halt> {
        let is_behind = !stub.toxics.is_empty();
        let order = Order::Stub(StubOrder {
            name: stub.name.clone(),
            port: stub.port,
            answers: stub.answers.clone(),
            seed: stub.seed,
            is_behind,
        });
        let network = match self.ask(&order)? {
            Answer::Standing { network } => network,
            other => return done(other, "answering in its place"),
        };
        self.stubs.push(stub.name.clone());
        if !is_behind {
            return Ok(());
        }
        let proxied = Proxied {
            port: stub.port,
            toxics: stub.toxics.clone(),
            seed: stub.seed,
        };
        let container = None;
        let path = network;
        self.link(
            &stub.name,
            &proxied,
            &Net::Of(Namespace { path, container }),
        )
    }

    /// A phase of load begins at this moment.
    ///
    /// # Errors
    /// [`Halt::Failed`] when it is not there any more.
    pub(crate) fn begin(&mut self, at_ns: u64, is_measured: bool) -> Result<(), Halt> {
        self.in_window = true;
        let order = Order::Window { at_ns, is_measured };
        self.done(&order, "beginning to count")
    }

    /// It ends; the last one counts. A proxy that is gone is found by [`Proxy::look`].
    pub(crate) fn end_window(&mut self) {
        if !std::mem::take(&mut self.in_window) {
            return;
        }
        if let Ok(Answer::Report(report)) = self.ask(&Order::Report) {
            self.keep(report);
        }
    }

    fn keep(&mut self, report: Report) {
        self.evidence.window = Some(report.window);
        self.evidence.cpu = report.cpu;
        self.evidence.lag_p99 = report.lag_p99;
        self.evidence.lag_max = report.lag_max;
        for ((_, link), counted) in self.links.iter_mut().zip(report.links) {
            link.total = counted.total;
            link.seconds = counted.seconds;
        }
    }

    /// Whether it is still there.
    ///
    /// # Errors
    /// [`Halt::Failed`] where it has ended, with what it said.
    pub(crate) fn look(&mut self) -> Result<(), Halt> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(self.gone()),
        }
    }

    /// Ends it; its own figures, those of its links, and those of its stubs, in the order in which
    /// they were made.
    pub(crate) fn end(mut self) -> Ended {
        self.end_window();
        let counted = match self.stubs.is_empty() {
            true => Vec::new(),
            false => self.counted(),
        };
        Ended {
            proxy: std::mem::take(&mut self.evidence),
            links: std::mem::take(&mut self.links),
            stubs: std::mem::take(&mut self.stubs)
                .into_iter()
                .zip(counted)
                .collect(),
        }
    }

    /// What its stubs were asked for; nothing where it is gone, which the trial says.
    fn counted(&mut self) -> Vec<StubEvidence> {
        let Ok(Answer::Counted { stubs }) = self.ask(&Order::Counted) else {
            return vec![StubEvidence::default(); self.stubs.len()];
        };
        let of = |report: StubReport| StubEvidence {
            requests: report.requests,
            unanswered: report.unanswered,
        };
        stubs.into_iter().map(of).collect()
    }

    fn done(&mut self, order: &impl serde::Serialize, what: &str) -> Result<(), Halt> {
        done(self.ask(order)?, what)
    }

    fn ask(&mut self, order: &impl serde::Serialize) -> Result<Answer, Halt> {
        let mut line = serde_json::to_vec(order).map_err(halt::step("writing to the proxy"))?;
        line.push(b'\n');
        let written = match &mut self.orders {
            Some(orders) => orders.write_all(&line),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        let answer = written
            .ok()
            .and_then(|()| self.answers.recv_timeout(ANSWER).ok());
        answer.ok_or_else(|| self.gone())
    }

    /// What is to be said of one that has ended.
    fn gone(&mut self) -> Halt {
        let _ = self.child.kill();
        let how = self.child.wait();
        let how = how.map_or_else(|error| error.to_string(), |status| status.to_string());
        let mut said = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            let _ = stderr.take(COMPLAINT).read_to_end(&mut said);
        }
        let said = plain(&String::from_utf8_lossy(&said));
        halt::failed(format_args!(
            "the proxy before the dependencies ended ({how}): {}",
            said.trim()
        ))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Already ended: then there is nothing to kill, only to reap.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn done(answer: Answer, what: &str) -> Result<(), Halt> {
    match answer {
        Answer::Done => Ok(()),
        Answer::Refused { why } => {
            let hint = "another program may have the port; `loadline doctor` shows what this machine can do";
            Err(refused(&format!("{what} with the proxy"), why, hint))
        }
        Answer::Report(_) | Answer::Standing { .. } | Answer::Counted { .. } => {
            Err(halt::failed("the proxy answers what it was not asked"))
        }
    }
}

fn group(site: &Site, trial: &str) -> Result<TrialGroup, Halt> {
    let making = |error| halt::cgroup("making the proxy's cgroup", &error);
    let name = format!("{trial}-proxy");
    let name = GroupName::new(Path::new("/proc"), &name).map_err(making)?;
    let has_memory = site.layout.place(Controller::Memory).is_some();
    let limits = Limits {
        cpu_shares: Some(GENERATOR_SHARES),
        memory: has_memory.then_some(Bytes::from_bytes(MEMORY)),
        ..Limits::default()
    };
    let group = TrialGroup::make(&site.layout, &name.to_string(), &limits);
    Ok(group.map_err(making)?)
}
