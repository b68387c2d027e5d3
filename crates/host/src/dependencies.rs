//! All dependencies of a trial: started one after the other before the application, ended after it.
//! Those that trials share run already, and go on when it has ended ([`crate::keeper`]).
//!
//! Owns their order and their networks. Those without toxics share one with the application; those
//! with toxics share another one among themselves, and the application reaches them through the
//! proxy, at the same address. One of them that ends ends the trial: what is measured without it is
//! not the application.

use std::time::{Duration, Instant};

use loadline_analysis::record::{Beside, DependencyEvidence, Failure, ProxyEvidence};
use loadline_cgroup::Group;
use loadline_trial::{Dependency, Network, Order, Proxied, Refusal};

use crate::container::Net;
use crate::counted::{Counted, Joined};
use crate::cpus::CpuPlan;
use crate::dependency::Running;
use crate::halt::{self, Halt};
use crate::proxy::Proxy;
use crate::site::Site;
use crate::trial::Stop;

/// Distance of looks at their memory.
const WEIGH: Duration = Duration::from_secs(1);

/// One dependency, whoever owns it.
enum One {
    /// This trial; dropping it ends it.
    Fresh(Box<Running>),
    /// The keeper.
    Kept(Box<Joined>),
}

/// The dependencies of one trial; dropping them ends those that are its own.
pub(crate) struct Dependencies {
    /// What the application's network is where there is none.
    without: Net,
    running: Vec<One>,
    /// The process that holds those that are not.
    keeper: Option<u32>,
    /// Those behind the proxy, in their order, as indices of the above.
    behind: Vec<usize>,
    proxy: Option<Proxy>,
    weighed: Instant,
}

impl Dependencies {
    /// None yet.
    pub(crate) fn new(order: &Order) -> Self {
        Self {
            without: without(order),
            running: Vec::new(),
            keeper: order.kept.as_ref().map(|kept| kept.keeper),
            behind: Vec::new(),
            proxy: None,
            weighed: Instant::now(),
        }
    }

    /// Starts each, waits until it is ready, and seeds it, before the next.
    ///
    /// # Errors
    /// [`Halt`]: one that cannot be started, gets never ready or cannot be seeded. Those that run
    /// are still there, to be ended.
    pub(crate) fn start(&mut self, site: &Site, order: &Order, stop: Stop<'_>) -> Result<(), Halt> {
        if order.dependencies.is_empty() && order.stubs.is_empty() {
            return Ok(());
        }
        let plan = site.plan_cpus(order, 0)?;
        self.join((site, order), &plan)?;
        let is_kept = |name: &str| {
            let mut kept = order.kept.iter().flat_map(|kept| &kept.dependencies);
            kept.any(|kept| kept.evidence.name == name)
        };
        let fresh = order.dependencies.iter().filter(|d| !is_kept(&d.name));
        for dependency in fresh {
            self.start_one(site, order, (dependency, &plan), stop)
                .map_err(|halt| named(halt, &dependency.name))?;
        }
        for stub in &order.stubs {
            self.proxy(site, order, &plan)
                .and_then(|proxy| proxy.stub(stub))
                .map_err(|halt| named(halt, &stub.name))?;
        }
        Ok(())
    }

    /// Takes those that run already, all of them before the proxy stands before one: it joins their
    /// networks.
    fn join(&mut self, (site, order): (&Site, &Order), plan: &CpuPlan) -> Result<(), Halt> {
        let Some(kept) = &order.kept else {
            return Ok(());
        };
        let mut proxied = Vec::new();
        for one in &kept.dependencies {
            let of = |error| halt::cgroup("looking at a dependency that trials share", &error);
            let joined = Joined::new(&site.layout, one).map_err(of)?;
            let mut all = order.dependencies.iter();
            let dependency = all.find(|d| d.name == one.evidence.name);
            if let Some((dependency, with)) =
                dependency.and_then(|d| Some((d, d.proxied.as_ref()?)))
            {
                self.behind.push(self.running.len());
                proxied.push((dependency, with));
            }
            self.running.push(One::Kept(Box::new(joined)));
        }
        let behind = self.network_behind();
        for (dependency, with) in proxied {
            self.proxy(site, order, plan)
                .and_then(|proxy| proxy.link(&dependency.name, with, &behind))
                .map_err(|halt| named(halt, &dependency.name))?;
        }
        Ok(())
    }

    /// The proxy, which is started where it is not yet.
    fn proxy(&mut self, site: &Site, order: &Order, plan: &CpuPlan) -> Result<&mut Proxy, Halt> {
        let proxy = match self.proxy.take() {
            Some(proxy) => proxy,
            None => Proxy::start(site, &order.trial, plan, &self.network())?,
        };
        Ok(self.proxy.insert(proxy))
    }

    fn start_one(
        &mut self,
        site: &Site,
        order: &Order,
        (dependency, plan): (&Dependency, &CpuPlan),
        stop: Stop<'_>,
    ) -> Result<(), Halt> {
        let network = match dependency.proxied {
            None => self.network(),
            Some(_) => self.network_behind(),
        };
        let running = Running::start(site, order, dependency, plan, network)?;
        self.running.push(One::Fresh(Box::new(running)));
        let Some(One::Fresh(running)) = self.running.last_mut() else {
            return Ok(());
        };
        running.await_ready(dependency, &plan.generator, stop)?;
        running.seed((site, order), dependency, plan, stop)?;
        match &dependency.proxied {
            None => Ok(()),
            Some(proxied) => self.stand_before((site, order), dependency, proxied, plan),
        }
    }

    /// Puts the proxy before the last that was started.
    fn stand_before(
        &mut self,
        (site, order): (&Site, &Order),
        dependency: &Dependency,
        proxied: &Proxied,
        plan: &CpuPlan,
    ) -> Result<(), Halt> {
        self.behind.push(self.running.len() - 1);
        let behind = self.network_behind();
        let proxy = self.proxy(site, order, plan)?;
        proxy.link(&dependency.name, proxied, &behind)
    }

    /// The network of the application and of dependencies without toxics: that of the first of
    /// these, where there is one, else that of the proxy.
    pub(crate) fn network(&self) -> Net {
        let mut all = (0..).zip(&self.running);
        let first = all.find(|(index, _)| !self.behind.contains(index));
        let first = first.map(|(_, one)| one.network());
        first
            .or_else(|| Some(self.proxy.as_ref()?.network()))
            .unwrap_or_else(|| self.without.clone())
    }

    /// The network of dependencies with toxics: that of the first of them, where there is one.
    fn network_behind(&self) -> Net {
        let first = self
            .behind
            .first()
            .and_then(|index| self.running.get(*index));
        first.map_or(Net::Own, One::network)
    }

    /// Their cgroups: what they use is part of the trial, not noise.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &Group> {
        let proxy = self.proxy.iter().map(Proxy::group);
        self.running.iter().map(One::group).chain(proxy)
    }

    /// The process that holds those that trials share: what it uses is loadline's own.
    pub(crate) fn keeper(&self) -> Option<u32> {
        self.keeper
    }

    /// Whether one runs on the application's CPUs: that it waits there is the experiment.
    pub(crate) fn share_with_application(&self) -> bool {
        let mut all = self.running.iter();
        all.any(|one| one.evidence().beside == Beside::Application)
    }

    /// Looks after them.
    ///
    /// # Errors
    /// [`Halt::Failed`] where one has ended, or the proxy.
    pub(crate) fn look(&mut self) -> Result<(), Halt> {
        if let Some(proxy) = &mut self.proxy {
            proxy.look()?;
        }
        if self.weighed.elapsed() >= WEIGH {
            self.weighed = Instant::now();
            self.count(Counted::weigh);
        }
        match self.running.iter_mut().find_map(One::look) {
            Some(failure) => Err(Halt::Failed(failure)),
            None => Ok(()),
        }
    }

    fn count(&mut self, what: fn(&mut Counted)) {
        self.running.iter_mut().for_each(|one| what(one.counted()));
    }

    /// Begins the window of their counters.
    pub(crate) fn begin_window(&mut self) {
        self.count(Counted::begin_window);
    }

    /// Whether what is wrong on the way to them counts from the begin of the load.
    pub(crate) fn need_begin(&self) -> bool {
        self.proxy.is_some()
    }

    /// A phase of load begins at this moment.
    ///
    /// # Errors
    /// [`Halt::Failed`] where the proxy has ended.
    pub(crate) fn begin_load(&mut self, at_ns: u64, is_measured: bool) -> Result<(), Halt> {
        match &mut self.proxy {
            Some(proxy) => proxy.begin(at_ns, is_measured),
            None => Ok(()),
        }
    }

    /// Ends it; the last one counts.
    pub(crate) fn end_window(&mut self) {
        if let Some(proxy) = &mut self.proxy {
            proxy.end_window();
        }
        self.count(Counted::end_window);
    }

    /// Ends them, the last started first, and hands over what was measured of each, in their order,
    /// and of the proxy.
    pub(crate) fn end(&mut self) -> (Vec<DependencyEvidence>, Option<ProxyEvidence>) {
        let ended = self.proxy.take().map(Proxy::end);
        let all = std::mem::take(&mut self.running);
        let mut evidence: Vec<_> = all.into_iter().rev().map(One::end).collect();
        evidence.reverse();
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
                beside: Beside::Generator,
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

impl One {
    fn network(&self) -> Net {
        match self {
            Self::Fresh(running) => running.network(),
            Self::Kept(joined) => joined.network(),
        }
    }

    fn group(&self) -> &Group {
        match self {
            Self::Fresh(running) => running.group(),
            Self::Kept(joined) => joined.seen().group(),
        }
    }

    fn evidence(&self) -> &DependencyEvidence {
        match self {
            Self::Fresh(running) => running.evidence(),
            Self::Kept(joined) => &joined.seen().evidence,
        }
    }

    fn counted(&mut self) -> &mut Counted {
        match self {
            Self::Fresh(running) => running.counted(),
            Self::Kept(joined) => joined.counted(),
        }
    }

    fn look(&mut self) -> Option<Failure> {
        match self {
            Self::Fresh(running) => running.look(),
            Self::Kept(joined) => joined.look(),
        }
    }

    fn end(self) -> DependencyEvidence {
        match self {
            Self::Fresh(running) => running.end(),
            Self::Kept(joined) => joined.end(),
        }
    }
}

/// The network of an order's application where nobody has made one.
pub(crate) fn without(order: &Order) -> Net {
    match order.network {
        Network::Own => Net::Own,
        Network::Host => Net::Host,
    }
}

/// A refusal with the dependency that it is about.
pub(crate) fn named(halt: Halt, name: &str) -> Halt {
    match halt {
        Halt::Refused(Refusal { what, why, hint }) => {
            Refusal::new(format!("the dependency {name}: {what}"), why, hint).into()
        }
        other => other,
    }
}
