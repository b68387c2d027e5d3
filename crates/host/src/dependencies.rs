//! All dependencies of a trial: started one after the other before the application, ended after it.
//!
//! Owns their order and the network that they share with the application. One of them that ends
//! ends the trial: what is measured without it is not the application.

use std::time::{Duration, Instant};

use loadline_analysis::record::{Beside, DependencyEvidence};
use loadline_cgroup::Group;
use loadline_trial::{Dependency, Network, Order, Refusal};

use crate::container::Net;
use crate::cpus::CpuPlan;
use crate::dependency::Running;
use crate::halt::Halt;
use crate::site::Site;
use crate::trial::Stop;

/// Distance of looks at their memory.
const WEIGH: Duration = Duration::from_secs(1);

/// The dependencies of one trial; dropping them ends them.
pub(crate) struct Dependencies {
    /// What the application's network is where there is none.
    without: Net,
    running: Vec<Running>,
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
        if order.dependencies.is_empty() {
            return Ok(());
        }
        let plan = site.plan_cpus(order, 0)?;
        for dependency in &order.dependencies {
            self.start_one(site, order, (dependency, &plan), stop)
                .map_err(|halt| named(halt, &dependency.name))?;
        }
        Ok(())
    }

    fn start_one(
        &mut self,
        site: &Site,
        order: &Order,
        (dependency, plan): (&Dependency, &CpuPlan),
        stop: Stop<'_>,
    ) -> Result<(), Halt> {
        let running = Running::start(site, order, dependency, plan, self.network())?;
        self.shares_with_application |= running.beside() == Beside::Application;
        self.running.push(running);
        let Some(running) = self.running.last_mut() else {
            return Ok(());
        };
        running.await_ready(dependency, &plan.generator, stop)?;
        running.seed((site, order), dependency, plan, stop)
    }

    /// The network of what is started next: that of the first of them, where there is one.
    pub(crate) fn network(&self) -> Net {
        let first = self.running.first().map(Running::network);
        first.unwrap_or_else(|| self.without.clone())
    }

    /// Their cgroups: what they use is part of the trial, not noise.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &Group> {
        self.running.iter().map(Running::group)
    }

    /// Whether one runs on the application's CPUs: that it waits there is the experiment.
    pub(crate) fn share_with_application(&self) -> bool {
        self.shares_with_application
    }

    /// Looks after them.
    ///
    /// # Errors
    /// [`Halt::Failed`] where one has ended.
    pub(crate) fn look(&mut self) -> Result<(), Halt> {
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

    /// Ends it; the last one counts.
    pub(crate) fn end_window(&mut self) {
        self.running.iter_mut().for_each(Running::end_window);
    }

    /// Ends them, the last started first, and hands over what was measured of each, in their order.
    pub(crate) fn end(&mut self) -> Vec<DependencyEvidence> {
        let all = std::mem::take(&mut self.running);
        let mut evidence: Vec<_> = all.into_iter().rev().map(Running::end).collect();
        evidence.reverse();
        evidence
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
