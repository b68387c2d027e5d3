//! Which CPUs the application gets and which ones loadline keeps for the load generator and its
//! own threads.
//!
//! Owns the plan (a pure function) and the pinning of threads. The generator must not take what
//! it measures (facts: a client on the server's CPU steals from it).

use loadline_analysis::record::CpuNeighbours;
use loadline_sizing::Cpus;
use loadline_sys::{CpuSet, sched_getaffinity, sched_setaffinity};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuPlan {
    pub application: Vec<u32>,
    pub generator: Vec<u32>,
    /// Those of dependencies that name none; the application's, the generator's or their own.
    pub dependencies: Vec<u32>,
    pub warnings: Vec<String>,
}

impl CpuPlan {
    /// Splits `available` (sorted, not empty) for an application with this quota.
    ///
    /// The generator gets the last quarter, fewer if the quota needs more; when not even one CPU
    /// can be spared, both run everywhere. `wanted` is the configuration's own cpuset.
    /// Of several instances each has this quota, and all run on the same CPUs of the plan.
    pub fn new(
        available: &[u32],
        quota: Option<Cpus>,
        wanted: Option<&[u32]>,
        instances: u32,
    ) -> Self {
        let in_all = quota.map(|q| Cpus::from_millis(q.as_millis().saturating_mul(instances)));
        let mut plan = match wanted {
            Some(wanted) => Self::split_around(available, wanted),
            None => Self::split_cpus(available, in_all),
        };
        if plan.is_shared() {
            plan.warnings.push(format!(
                "the load generator shares CPUs {} with the application: latencies include its work",
                format_cpu_list(&plan.generator)
            ));
        }
        if plan.never_throttles(quota) && wanted.is_none() && !plan.is_shared() {
            plan.warnings.push(format!(
                "the application runs on {} of {} CPUs, no more than its quota: it is never throttled here, on a larger machine it may be",
                plan.application.len(),
                available.len()
            ));
        }
        plan
    }

    /// Everything everywhere: who runs where is the node's kernel's to say.
    pub fn unsplit(available: &[u32]) -> Self {
        Self::split_in_two(available, available)
    }

    /// Whether the quota covers all CPUs of the application, so that nothing can throttle it.
    pub fn never_throttles(&self, quota: Option<Cpus>) -> bool {
        let whole = Cpus::from_whole(self.application.len() as u32);
        quota.is_some_and(|quota| quota >= whole)
    }

    /// Assigns CPUs to dependencies: half of the CPUs beyond the application's quota, else the
    /// generator's, which keeps its schedule by a larger weight; the application's only if all
    /// share all.
    pub fn with_dependencies(mut self, quota: Option<Cpus>, is_given: bool) -> Self {
        let needed = quota.map_or(usize::MAX, |q| q.ceil().max(1) as usize);
        let spare = self.application.len().saturating_sub(needed);
        let own = if self.is_shared() || is_given {
            0
        } else {
            spare.div_ceil(2)
        };
        let rest = self.application.len() - own;
        self.dependencies = match own {
            0 => self.generator.clone(),
            _ => self.application.split_off(rest),
        };
        self
    }

    pub fn beside_dependency(&self, cpus: &[u32]) -> CpuNeighbours {
        let is_among = |others: &[u32]| cpus.iter().any(|cpu| others.contains(cpu));
        match (is_among(&self.application), is_among(&self.generator)) {
            (true, _) => CpuNeighbours::Application,
            (false, true) => CpuNeighbours::Generator,
            (false, false) => CpuNeighbours::Nobody,
        }
    }

    pub fn is_shared(&self) -> bool {
        self.generator.iter().any(|c| self.application.contains(c))
    }

    pub fn generator_competes(&self) -> bool {
        self.is_shared() || self.generator.iter().any(|c| self.dependencies.contains(c))
    }

    fn split_cpus(available: &[u32], quota: Option<Cpus>) -> Self {
        let needed = quota.map_or(usize::MAX, |q| q.ceil().max(1) as usize);
        let spare = available.len().saturating_sub(needed);
        let generator = spare.min(available.len().div_ceil(4));
        if generator == 0 {
            return Self::split_in_two(available, available);
        }
        let (application, generator) = available.split_at(available.len() - generator);
        Self::split_in_two(application, generator)
    }

    fn split_around(available: &[u32], wanted: &[u32]) -> Self {
        let mut others = available.to_vec();
        others.retain(|cpu| !wanted.contains(cpu));
        if others.is_empty() {
            Self::split_in_two(wanted, available)
        } else {
            Self::split_in_two(wanted, &others)
        }
    }

    fn split_in_two(application: &[u32], generator: &[u32]) -> Self {
        Self {
            application: application.to_vec(),
            generator: generator.to_vec(),
            dependencies: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// As ranges: `0-3,8`.
pub fn format_cpu_list(cpus: &[u32]) -> String {
    let set: loadline_sizing::CpuSet = cpus.iter().copied().collect();
    set.to_string()
}

pub fn available_cpus() -> rustix::io::Result<Vec<u32>> {
    let mask = sched_getaffinity(None)?;
    let all = 0..CpuSet::MAX_CPU as u32;
    Ok(all.filter(|cpu| mask.is_set(*cpu as usize)).collect())
}

pub fn mask(cpus: &[u32]) -> CpuSet {
    let mut mask = CpuSet::new();
    for cpu in cpus.iter().filter(|c| **c < CpuSet::MAX_CPU as u32) {
        mask.set(*cpu as usize);
    }
    mask
}

pub fn pin_this_thread(cpus: &[u32]) {
    // The CPUs were ours a moment ago; should the kernel refuse, threads run where they did.
    let _ = sched_setaffinity(None, &mask(cpus));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(available: u32, quota: Option<&str>) -> (String, String, usize) {
        let available: Vec<u32> = (0..available).collect();
        let quota = quota.map(|q| q.parse().expect("a quota"));
        let plan = CpuPlan::new(&available, quota, None, 1);
        (
            format_cpu_list(&plan.application),
            format_cpu_list(&plan.generator),
            plan.warnings.len(),
        )
    }

    #[test]
    fn the_generator_gets_the_last_cpus_when_the_quota_leaves_some() {
        let owned = |a: &str, g: &str, w| (a.to_owned(), g.to_owned(), w);
        assert_eq!(split(2, Some("500m")), owned("0", "1", 0));
        // One CPU of quota on one CPU: nothing can be throttled, and that is said.
        assert_eq!(split(2, Some("1")), owned("0", "1", 1));
        assert_eq!(split(2, Some("1500m")), owned("0-1", "0-1", 1));
        assert_eq!(split(8, Some("2")), owned("0-5", "6-7", 0));
        assert_eq!(split(8, Some("7")), owned("0-6", "7", 1));
        assert_eq!(split(16, Some("4")), owned("0-11", "12-15", 0));
        assert_eq!(split(1, Some("500m")), owned("0", "0", 1));
        assert_eq!(split(4, None), owned("0-3", "0-3", 1));
    }

    #[test]
    fn several_instances_are_planned_for_by_the_sum_of_their_quotas() {
        let half = Some(Cpus::from_millis(500));
        let plan = |instances| CpuPlan::new(&[0, 1, 2, 3], half, None, instances);
        assert_eq!(format_cpu_list(&plan(4).application), "0-2");
        let six = plan(7);
        assert!(six.is_shared(), "3.5 CPUs leave none for the generator");
        assert!(
            plan(4).warnings.is_empty(),
            "each is throttled at half a CPU"
        );
    }

    #[test]
    fn dependencies_get_cpus_of_their_own_where_the_quota_leaves_some() {
        let with = |available: u32, quota: Option<&str>| {
            let available: Vec<u32> = (0..available).collect();
            let quota = quota.map(|q| q.parse().expect("a quota"));
            let plan = CpuPlan::new(&available, quota, None, 1).with_dependencies(quota, false);
            let beside = plan.beside_dependency(&plan.dependencies);
            (
                format_cpu_list(&plan.application),
                format_cpu_list(&plan.dependencies),
                beside,
            )
        };
        let owned = |a: &str, d: &str, beside| (a.to_owned(), d.to_owned(), beside);
        assert_eq!(
            with(8, Some("2")),
            owned("0-3", "4-5", CpuNeighbours::Nobody)
        );
        assert_eq!(with(4, Some("1")), owned("0-1", "2", CpuNeighbours::Nobody));
        assert_eq!(
            with(2, Some("500m")),
            owned("0", "1", CpuNeighbours::Generator)
        );
        assert_eq!(
            with(2, Some("2")),
            owned("0-1", "0-1", CpuNeighbours::Application)
        );
        assert_eq!(
            with(4, None),
            owned("0-3", "0-3", CpuNeighbours::Application)
        );
    }

    #[test]
    fn a_cpuset_of_the_configuration_wins() {
        let quota = Some(Cpus::from_whole(1));
        let plan = CpuPlan::new(&[0, 1, 2], quota, Some(&[1]), 1);
        assert_eq!(
            (
                format_cpu_list(&plan.application),
                format_cpu_list(&plan.generator)
            ),
            ("1".into(), "0,2".into())
        );
        assert!(plan.warnings.is_empty());
        let plan = CpuPlan::new(&[0, 1], None, Some(&[0, 1]), 1);
        assert!(plan.is_shared() && plan.warnings.len() == 1);
    }

    #[test]
    fn cpus_are_listed_as_the_kernel_does() {
        assert_eq!(format_cpu_list(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(format_cpu_list(&[]), "");
        let own = available_cpus().expect("it is always known");
        assert!(!own.is_empty() && own.is_sorted());
    }
}
