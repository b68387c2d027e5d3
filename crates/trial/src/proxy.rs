//! The proxy of a trial: `loadline proxy-part`, between the application and its dependencies.
//!
//! Owns the process, its cgroup and its orders. It runs on the CPUs of the load generator, with the
//! same weight: neither may wait for a dependency. `loadline-proxy` handles the bytes; its module
//! `network` makes it listen at a dependency's address.

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::process::ChildStdin;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use loadline_analysis::record::{LinkEvidence, OutageEvidence, ProxyEvidence, StubEvidence};
use loadline_cgroup::{CgroupLimits, ControlGroup, Controller, GroupName};
use loadline_protocol::{ProxiedLink, StubSpec};
use loadline_proxy::part::{
    ApplicationNetwork, LinkOrder, ProxyAnswer, ProxyOrder, ProxyReport, ProxyStart, StubReport,
};
use loadline_proxy::stub::StubOrder;
use loadline_proxy::{Toxic, ToxicSpan};
use loadline_sizing::Bytes;
use loadline_sys::set_parent_process_death_signal;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use crate::container::{ContainerNetwork, NetworkNamespace};
use crate::cpus;
use crate::dependency::DependencySite;
use crate::group::TrialGroup;
use crate::halt::{self, HaltReason, refusal_halt};
use crate::instance::GENERATOR_SHARES;
use crate::site::Site;
use crate::spawner::{self, GuardedChild};
use loadline_analysis::foreign_text::indented_line;

/// Memory that the proxy may take, in bytes, the kernel's for it included: it holds 512 MiB back at
/// most.
const MEMORY: u64 = 2 << 30;

/// An order is carried out in microseconds; a process that takes longer is not there any more.
const ANSWER: Duration = Duration::from_secs(10);

pub fn run_proxy_process(
    orders: impl BufRead + std::os::fd::AsFd,
    answers: impl Write,
) -> io::Result<()> {
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
pub(crate) fn scheduled_outages(order: &loadline_protocol::TrialOrder) -> Vec<OutageEvidence> {
    let of = |(name, toxics): (&String, &[Toxic])| {
        let name = name.clone();
        let told = |toxic: &Toxic| Some((toxic.span?, toxic.effect.to_string()));
        let scheduled = toxics.iter().filter_map(told);
        let outage = move |(span, what): (ToxicSpan, String)| OutageEvidence {
            dependency: name.clone(),
            what,
            from: span.at,
            to: span.end_time(),
        };
        scheduled.map(outage).collect::<Vec<_>>()
    };
    let proxied = order.dependencies.iter();
    let proxied = proxied.filter_map(|d| Some((&d.name, d.proxied.as_ref()?.toxics.as_slice())));
    let stubs = order.stubs.iter();
    let stubs = stubs.map(|stub| (&stub.name, stub.toxics.as_slice()));
    let mut all: Vec<_> = proxied.chain(stubs).flat_map(of).collect();
    all.sort_by_key(|outage| outage.from);
    all
}

pub(crate) struct ProxyProcess {
    /// First, so that it is killed before its group is removed.
    child: GuardedChild,
    orders: Option<ChildStdin>,
    answers: Receiver<ProxyAnswer>,
    group: TrialGroup,
    front: ContainerNetwork,
    evidence: ProxyEvidence,
    links: Vec<(String, LinkEvidence)>,
    stubs: Vec<String>,
    in_window: bool,
}

pub(crate) struct ProxyFigures {
    pub(crate) proxy: ProxyEvidence,
    pub(crate) links: Vec<(String, LinkEvidence)>,
    pub(crate) stubs: Vec<(String, StubEvidence)>,
}

impl ProxyProcess {
    /// Starts it in this network, or in a new one. Errors: [`HaltReason`], after cleaning up.
    pub(crate) fn start_proxy(
        at: DependencySite<'_>,
        front: &ContainerNetwork,
    ) -> Result<Self, HaltReason> {
        let trial = &at.order.trial;
        let group = make_proxy_group(at.site, trial)?;
        let mut command = spawner::part_command(&at.site.options.program, "proxy-part");
        command.env("LOADLINE_TRIAL", trial);
        let mut child =
            spawner::spawn_command(command).map_err(halt::step_failed("starting the proxy"))?;
        let answers = spawner::read_answers(&mut child, "proxy")
            .map_err(halt::step_failed("starting a thread"))?;
        let orders = child.stdin.take();
        let own = &at.plan.generator;
        let mut proxy = Self {
            child: GuardedChild(child),
            orders,
            answers,
            group,
            front: front.clone(),
            evidence: ProxyEvidence {
                cpus: cpus::format_cpu_list(own),
                ..ProxyEvidence::default()
            },
            links: Vec::new(),
            stubs: Vec::new(),
            in_window: false,
        };
        proxy.join_group()?;
        let begin = ProxyStart {
            front: match front {
                ContainerNetwork::Host => ApplicationNetwork::Host,
                ContainerNetwork::Own => ApplicationNetwork::Own,
                ContainerNetwork::Of(namespace) => ApplicationNetwork::Of(namespace.path.clone()),
            },
            cpus: own.clone(),
        };
        let what = "standing before the dependencies";
        match (proxy.send_order(&begin)?, front) {
            (ProxyAnswer::Standing { network: path }, ContainerNetwork::Own) => {
                let container = None;
                proxy.front = ContainerNetwork::Of(NetworkNamespace { path, container });
            }
            (ProxyAnswer::Standing { .. }, _) => {}
            (other, _) => check_done(other, what)?,
        }
        Ok(proxy)
    }

    fn join_group(&self) -> Result<(), HaltReason> {
        for file in self.group.as_group().join_files() {
            let moved = std::fs::write(file, self.child.0.id().to_string());
            moved.map_err(halt::step_failed("moving the proxy into its cgroup"))?;
        }
        Ok(())
    }

    pub(crate) fn front_network(&self) -> ContainerNetwork {
        self.front.clone()
    }

    pub(crate) fn own_group(&self) -> &ControlGroup {
        self.group.as_group()
    }

    /// Listens for a dependency in its network. Errors: [`HaltReason::Refused`] where it cannot.
    pub(crate) fn open_link(
        &mut self,
        name: &str,
        proxied: &ProxiedLink,
        behind: &ContainerNetwork,
    ) -> Result<(), HaltReason> {
        let network = behind.namespace_path();
        let network = network.unwrap_or(Path::new("/proc/self/ns/net"));
        let order = ProxyOrder::Link(LinkOrder {
            name: name.to_owned(),
            port: proxied.port,
            network: network.to_owned(),
            toxics: proxied.toxics.clone(),
            seed: proxied.seed,
        });
        self.expect_done(&order, "standing before it")?;
        let link = LinkEvidence {
            toxics: proxied.toxics.iter().map(ToString::to_string).collect(),
            ..LinkEvidence::default()
        };
        self.links.push((name.to_owned(), link));
        Ok(())
    }

    pub(crate) fn open_stub(&mut self, stub: &StubSpec) -> Result<(), HaltReason> {
        let is_behind = !stub.toxics.is_empty();
        let order = ProxyOrder::Stub(StubOrder {
            name: stub.name.clone(),
            port: stub.port,
            answers: stub.answers.clone(),
            seed: stub.seed,
            is_behind,
        });
        let network = match self.send_order(&order)? {
            ProxyAnswer::Standing { network } => network,
            other => return check_done(other, "answering in its place"),
        };
        self.stubs.push(stub.name.clone());
        if !is_behind {
            return Ok(());
        }
        let proxied = ProxiedLink {
            port: stub.port,
            toxics: stub.toxics.clone(),
            seed: stub.seed,
        };
        let (path, container) = (network, None);
        let behind = ContainerNetwork::Of(NetworkNamespace { path, container });
        self.open_link(&stub.name, &proxied, &behind)
    }

    pub(crate) fn begin_load(&mut self, at_ns: u64, is_measured: bool) -> Result<(), HaltReason> {
        self.in_window = true;
        let order = ProxyOrder::Window { at_ns, is_measured };
        self.expect_done(&order, "beginning to count")
    }

    pub(crate) fn end_window(&mut self) {
        if !std::mem::take(&mut self.in_window) {
            return;
        }
        if let Ok(ProxyAnswer::Report(report)) = self.send_order(&ProxyOrder::Report) {
            self.keep_report(report);
        }
    }

    fn keep_report(&mut self, report: ProxyReport) {
        self.evidence.window = Some(report.window);
        self.evidence.cpu = report.cpu;
        self.evidence.lag_p99 = report.lag_p99;
        self.evidence.lag_max = report.lag_max;
        for ((_, link), counted) in self.links.iter_mut().zip(report.links) {
            link.total = counted.total;
            link.seconds = counted.seconds;
        }
    }

    pub(crate) fn check_running(&mut self) -> Result<(), HaltReason> {
        match self.child.0.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(self.proxy_ended()),
        }
    }

    pub(crate) fn end_proxy(mut self) -> ProxyFigures {
        self.end_window();
        let counted = if self.stubs.is_empty() {
            Vec::new()
        } else {
            self.stub_counts()
        };
        let stubs = std::mem::take(&mut self.stubs).into_iter();
        ProxyFigures {
            proxy: std::mem::take(&mut self.evidence),
            links: std::mem::take(&mut self.links),
            stubs: stubs.zip(counted).collect(),
        }
    }

    fn stub_counts(&mut self) -> Vec<StubEvidence> {
        let Ok(ProxyAnswer::Counted { stubs }) = self.send_order(&ProxyOrder::Counted) else {
            return vec![StubEvidence::default(); self.stubs.len()];
        };
        let of = |report: StubReport| StubEvidence {
            requests: report.requests,
            unanswered: report.unanswered,
        };
        stubs.into_iter().map(of).collect()
    }

    fn expect_done(&mut self, order: &impl serde::Serialize, what: &str) -> Result<(), HaltReason> {
        check_done(self.send_order(order)?, what)
    }

    fn send_order(&mut self, order: &impl serde::Serialize) -> Result<ProxyAnswer, HaltReason> {
        let mut line =
            serde_json::to_vec(order).map_err(halt::step_failed("writing to the proxy"))?;
        line.push(b'\n');
        let written = match &mut self.orders {
            Some(orders) => orders.write_all(&line),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        let written = written.ok();
        let answer = written.and_then(|()| self.answers.recv_timeout(ANSWER).ok());
        answer.ok_or_else(|| self.proxy_ended())
    }

    fn proxy_ended(&mut self) -> HaltReason {
        let (how, said) = spawner::kill_part(&mut self.child.0);
        let said = indented_line(&said);
        halt::measurement_failed(format_args!(
            "the proxy before the dependencies ended ({how}): {said}"
        ))
    }
}

fn check_done(answer: ProxyAnswer, what: &str) -> Result<(), HaltReason> {
    match answer {
        ProxyAnswer::Done => Ok(()),
        ProxyAnswer::Refused { why } => {
            let hint = "another program may have the port; `loadline doctor` shows what this machine can do";
            Err(refusal_halt(&format!("{what} with the proxy"), why, hint))
        }
        ProxyAnswer::Report(_) | ProxyAnswer::Standing { .. } | ProxyAnswer::Counted { .. } => Err(
            halt::measurement_failed("the proxy answers what it was not asked"),
        ),
    }
}

fn make_proxy_group(site: &Site, trial: &str) -> Result<TrialGroup, HaltReason> {
    let making = |error| halt::cgroup_refusal("making the proxy's cgroup", &error);
    let name = format!("{trial}-proxy");
    let name = GroupName::new(Path::new("/proc"), &name).map_err(making)?;
    let has_memory = site.layout.hierarchy_of(Controller::Memory).is_some();
    let limits = CgroupLimits {
        cpu_shares: Some(GENERATOR_SHARES),
        memory: has_memory.then_some(Bytes::from_bytes(MEMORY)),
        ..CgroupLimits::default()
    };
    let group = TrialGroup::create_limited(&site.layout, &name.to_string(), &limits);
    Ok(group.map_err(making)?)
}
