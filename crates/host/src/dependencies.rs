//! All dependencies of a trial: started one after the other before the application, ended after it.
//!
//! Owns their order and their networks. Those without toxics share one with the application; those
//! with toxics share another one among themselves, and the application reaches them through the
//! proxy, at the same address. One of them that ends ends the trial: what is measured without it is
//! not the application.

use std::time::{Duration, Instant};

use loadline_analysis::record::{Beside, DependencyEvidence, ProxyEvidence};
use loadline_cgroup::Group;
use loadline_trial::{Dependency, Network, Order, Proxied, Refusal};

use crate::container::Net;
use crate::cpus::CpuPlan;
use crate::dependency::Running;
use crate::halt::Halt;
use crate::proxy::Proxy;
use crate::site::Site;
use crate::trial::Stop;

/// Distance of looks at their memory.
const WEIGH: Duration = Duration::from_secs(1);

/// The dependencies of one trial; dropping them ends them.
pub(crate) struct Dependencies {
    /// What the application's network is where there is none.
    without: Net,
    running: Vec<Running>,
    /// Those behind the proxy, in their order, as indices of the above.
    behind: Vec<usize>,
    proxy: Option<Proxy>,
    weighed: Instant,
    shares_with_application: bool,
}

impl Dependencies {
    /// None yet.
    pub(crate) fn new(order: &Order) -> Self {
        Self {
            without: match order.network {
                Network::Own => Net::Own,
                Network::Host => Net::Host,
            },
            running: Vec::new(),
            behind: Vec::new(),
            proxy: None,
            weighed: Instant::now(),
            shares_with_application: false,
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
        for dependency in &order.dependencies {
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
        self.shares_with_application |= running.beside() == Beside::Application;
        self.running.push(running);
        let Some(running) = self.running.last_mut() else {
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
        let first = first.map(|(_, running)| running.network());
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
        first.map_or(Net::Own, Running::network)
    }

    /// Their cgroups: what they use is part of the trial, not noise.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &Group> {
        let proxy = self.proxy.iter().map(Proxy::group);
        self.running.iter().map(Running::group).chain(proxy)
    }

    /// Whether one runs on the application's CPUs: that it waits there is the experiment.
    pub(crate) fn share_with_application(&self) -> bool {
        self.shares_with_application
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
            self.running.iter_mut().for_each(Running::weigh);
        }
        match self.running.iter_mut().find_map(Running::look) {
            Some(failure) => Err(Halt::Failed(failure)),
            None => Ok(()),
        }
    }

    /// Begins the window of their counters.
    pub(crate) fn begin_window(&mut self) {
        self.running.iter_mut().for_each(Running::begin_window);
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
        self.running.iter_mut().for_each(Running::end_window);
    }

    /// Ends them, the last started first, and hands over what was measured of each, in their order,
    /// and of the proxy.
    pub(crate) fn end(&mut self) -> (Vec<DependencyEvidence>, Option<ProxyEvidence>) {
        let ended = self.proxy.take().map(Proxy::end);
        let all = std::mem::take(&mut self.running);
        let mut evidence: Vec<_> = all.into_iter().rev().map(Running::end).collect();
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

/// A refusal with the dependency that it is about.
fn named(halt: Halt, name: &str) -> Halt {
    match halt {
        Halt::Refused(Refusal { what, why, hint }) => {
            Refusal::new(format!("the dependency {name}: {what}"), why, hint).into()
        }
        other => other,
    }
}
