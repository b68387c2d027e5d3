//! All dependencies of a trial: started one after the other before the application, ended after it.
//! Shared ones run already, and continue after it ([`crate::keeper`]).
//!
//! Owns their order and their networks. Those without toxics share a network with the application;
//! those with toxics share another one, and the application reaches them through the proxy, at the
//! same address. If a dependency ends, so does the trial: without it the measurement does not
//! describe the application.

use std::time::{Duration, Instant};

use loadline_analysis::record::{
    CpuNeighbours, DependencyEvidence, MeasurementFailure, ProxyEvidence,
};
use loadline_cgroup::ControlGroup;
use loadline_protocol::{DependencySpec, NetworkMode, RunRefusal, TrialOrder};

use crate::container::ContainerNetwork;
use crate::counted::{DependencyCounters, JoinedDependency};
use crate::dependency::{DependencySite, RunningDependency};
use crate::halt::{self, HaltReason, Stop};
use crate::proxy::ProxyProcess;
use crate::site::Site;

const WEIGH: Duration = Duration::from_secs(1);

enum DependencyHandle {
    Fresh(Box<RunningDependency>),
    Kept(Box<JoinedDependency>),
}

/// The dependencies of one trial; dropping them ends the unshared ones.
pub(crate) struct TrialDependencies {
    without: ContainerNetwork,
    running: Vec<DependencyHandle>,
    pub(crate) keeper: Option<u32>,
    behind: Vec<usize>,
    pub(crate) proxy: Option<ProxyProcess>,
    weighed: Instant,
}

impl TrialDependencies {
    pub(crate) fn new(order: &TrialOrder) -> Self {
        Self {
            without: network_without_dependencies(order),
            running: Vec::new(),
            keeper: order.kept.as_ref().map(|kept| kept.keeper),
            behind: Vec::new(),
            proxy: None,
            weighed: Instant::now(),
        }
    }

    /// Starts each, waits until it is ready, and seeds it, before the next. Errors: [`HaltReason`]:
    /// a dependency that cannot be started, never becomes ready or cannot be seeded. Running ones
    /// stay, for the caller to end.
    pub(crate) fn start_all(
        &mut self,
        site: &Site,
        order: &TrialOrder,
        stop: Stop<'_>,
    ) -> Result<(), HaltReason> {
        if order.dependencies.is_empty() && order.stubs.is_empty() {
            return Ok(());
        }
        let plan = &site.plan_cpus(order, 0)?;
        let at = DependencySite {
            site,
            order,
            plan,
            stop,
        };
        self.join_shared(at)?;
        let is_kept = |name: &str| {
            let mut kept = order.kept.iter().flat_map(|kept| &kept.dependencies);
            kept.any(|kept| kept.evidence.name == name)
        };
        let fresh = order.dependencies.iter().filter(|d| !is_kept(&d.name));
        for dependency in fresh {
            self.start_one(at, dependency)
                .map_err(|halt| name_dependency(halt, &dependency.name))?;
        }
        for stub in &order.stubs {
            self.ensure_proxy(at)
                .and_then(|proxy| proxy.open_stub(stub))
                .map_err(|halt| name_dependency(halt, &stub.name))?;
        }
        Ok(())
    }

    /// Joins running shared dependencies, before the proxy is connected: it joins their networks.
    fn join_shared(&mut self, at: DependencySite<'_>) -> Result<(), HaltReason> {
        let Some(kept) = &at.order.kept else {
            return Ok(());
        };
        let mut proxied = Vec::new();
        for one in &kept.dependencies {
            let of =
                |error| halt::cgroup_refusal("looking at a dependency that trials share", &error);
            let joined = JoinedDependency::new(&at.site.layout, one).map_err(of)?;
            let mut all = at.order.dependencies.iter();
            let dependency = all.find(|d| d.name == one.evidence.name);
            if let Some((dependency, with)) =
                dependency.and_then(|d| Some((d, d.proxied.as_ref()?)))
            {
                self.behind.push(self.running.len());
                proxied.push((dependency, with));
            }
            self.running.push(DependencyHandle::Kept(Box::new(joined)));
        }
        let behind = self.network_behind();
        for (dependency, with) in proxied {
            self.ensure_proxy(at)
                .and_then(|proxy| proxy.open_link(&dependency.name, with, &behind))
                .map_err(|halt| name_dependency(halt, &dependency.name))?;
        }
        Ok(())
    }

    fn ensure_proxy(&mut self, at: DependencySite<'_>) -> Result<&mut ProxyProcess, HaltReason> {
        let proxy = match self.proxy.take() {
            Some(proxy) => proxy,
            None => ProxyProcess::start_proxy(at, &self.front_network())?,
        };
        Ok(self.proxy.insert(proxy))
    }

    fn start_one(
        &mut self,
        at: DependencySite<'_>,
        dependency: &DependencySpec,
    ) -> Result<(), HaltReason> {
        let network = match dependency.proxied {
            None => self.front_network(),
            Some(_) => self.network_behind(),
        };
        let running = RunningDependency::start_dependency(at, dependency, network)?;
        self.running
            .push(DependencyHandle::Fresh(Box::new(running)));
        let Some(DependencyHandle::Fresh(running)) = self.running.last_mut() else {
            return Ok(());
        };
        running.await_seeded(at)?;
        let Some(proxied) = &dependency.proxied else {
            return Ok(());
        };
        self.behind.push(self.running.len() - 1);
        let behind = self.network_behind();
        let proxy = self.ensure_proxy(at)?;
        proxy.open_link(&dependency.name, proxied, &behind)
    }

    /// The network of the application and of dependencies without toxics: the first such
    /// dependency's, else the proxy's.
    pub(crate) fn front_network(&self) -> ContainerNetwork {
        let mut all = (0..).zip(&self.running);
        let first = all.find(|(index, _)| !self.behind.contains(index));
        let first = first.map(|(_, one)| one.dependency_network());
        first
            .or_else(|| Some(self.proxy.as_ref()?.front_network()))
            .unwrap_or_else(|| self.without.clone())
    }

    fn network_behind(&self) -> ContainerNetwork {
        let first = self
            .behind
            .first()
            .and_then(|index| self.running.get(*index));
        first.map_or(ContainerNetwork::Own, DependencyHandle::dependency_network)
    }

    pub(crate) fn dependency_groups(&self) -> impl Iterator<Item = &ControlGroup> {
        let proxy = self.proxy.iter().map(ProxyProcess::own_group);
        let own = self.running.iter().map(|one| &one.counted().group);
        own.chain(proxy)
    }

    pub(crate) fn share_with_application(&self) -> bool {
        let mut all = self.running.iter();
        all.any(|one| one.counted().evidence.beside == CpuNeighbours::Application)
    }

    /// Looks after them.
    pub(crate) fn check_running(&mut self) -> Result<(), HaltReason> {
        if let Some(proxy) = &mut self.proxy {
            proxy.check_running()?;
        }
        if self.weighed.elapsed() >= WEIGH {
            self.weighed = Instant::now();
            self.for_each_counter(DependencyCounters::measure_memory);
        }
        let mut all = self.running.iter_mut();
        let failure = all.find_map(DependencyHandle::poll_failure);
        failure.map_or(Ok(()), |failure| Err(HaltReason::Failed(failure)))
    }

    fn for_each_counter(&mut self, what: fn(&mut DependencyCounters)) {
        let all = self.running.iter_mut();
        all.for_each(|one| what(one.counted_mut()));
    }

    pub(crate) fn begin_window(&mut self) {
        self.for_each_counter(DependencyCounters::begin_window);
    }

    pub(crate) fn begin_load(&mut self, at_ns: u64, is_measured: bool) -> Result<(), HaltReason> {
        match &mut self.proxy {
            Some(proxy) => proxy.begin_load(at_ns, is_measured),
            None => Ok(()),
        }
    }

    pub(crate) fn end_window(&mut self) {
        if let Some(proxy) = &mut self.proxy {
            proxy.end_window();
        }
        self.for_each_counter(DependencyCounters::end_window);
    }

    /// Ends them, and returns the evidence of each, in start order, and of the proxy.
    pub(crate) fn end_all(&mut self) -> (Vec<DependencyEvidence>, Option<ProxyEvidence>) {
        let ended = self.proxy.take().map(ProxyProcess::end_proxy);
        let all = std::mem::take(&mut self.running);
        let mut evidence = end_in_reverse(all, DependencyHandle::end_dependency);
        let Some(ended) = ended else {
            return (evidence, None);
        };
        let stubs = ended
            .stubs
            .into_iter()
            .map(|(name, stub)| DependencyEvidence {
                name,
                stub: Some(stub),
                cpus: ended.proxy.cpus.clone(),
                beside: CpuNeighbours::Generator,
                ..DependencyEvidence::default()
            });
        evidence.extend(stubs);
        for (name, link) in ended.links {
            if let Some(dependency) = evidence.iter_mut().find(|d| d.name == name) {
                dependency.link = Some(link);
            }
        }
        (evidence, Some(ended.proxy))
    }
}

impl DependencyHandle {
    fn dependency_network(&self) -> ContainerNetwork {
        match self {
            Self::Fresh(running) => running.dependency_network(),
            Self::Kept(joined) => joined.network.clone(),
        }
    }

    fn counted(&self) -> &DependencyCounters {
        match self {
            Self::Fresh(running) => &running.counted,
            Self::Kept(joined) => &joined.counted,
        }
    }

    fn counted_mut(&mut self) -> &mut DependencyCounters {
        match self {
            Self::Fresh(running) => &mut running.counted,
            Self::Kept(joined) => &mut joined.counted,
        }
    }

    fn poll_failure(&mut self) -> Option<MeasurementFailure> {
        match self {
            Self::Fresh(running) => running.poll_failure(),
            Self::Kept(joined) => joined.poll_failure(),
        }
    }

    fn end_dependency(self) -> DependencyEvidence {
        match self {
            Self::Fresh(running) => running.end_dependency(),
            Self::Kept(joined) => joined.into_evidence(),
        }
    }
}

/// Ends them, the last started first, and returns the evidence of each, in start order.
pub(crate) fn end_in_reverse<T>(
    all: Vec<T>,
    end: fn(T) -> DependencyEvidence,
) -> Vec<DependencyEvidence> {
    let mut evidence: Vec<_> = all.into_iter().rev().map(end).collect();
    evidence.reverse();
    evidence
}

/// The default network of an order's application.
pub(crate) fn network_without_dependencies(order: &TrialOrder) -> ContainerNetwork {
    match order.network {
        NetworkMode::Own => ContainerNetwork::Own,
        NetworkMode::Host => ContainerNetwork::Host,
    }
}

pub(crate) fn name_dependency(halt: HaltReason, name: &str) -> HaltReason {
    match halt {
        HaltReason::Refused(RunRefusal { what, why, hint }) => {
            RunRefusal::new(format!("the dependency {name}: {what}"), why, hint).into()
        }
        other => other,
    }
}
