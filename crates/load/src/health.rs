//! Whether the generator itself was the bottleneck.
//!
//! Owns the rule and its reason text. Facts come from the send lag, the process's CPU time, the
//! threads' run delay (/proc/thread-self/schedstat, field 2; kernel
//! Documentation/scheduler/sched-stats.rst), cpu.stat of the own cgroups, and the steal time of
//! the machine (/proc/stat; kernel Documentation/filesystems/proc.rst, 1.7), which only explains.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use serde::{Deserialize, Serialize};

use crate::outcome::LoadTotals;
use crate::plan::{LoadModel, LoadPlan, Pacing};

/// The generator's 99th percentile send lag must stay below this, or a tenth of the SLO if that
/// is longer, plus the pacing quantum.
pub const MAX_LAG: Duration = Duration::from_millis(1);
/// Largest share of requests that may be sent later than ten times that limit.
pub const MAX_MISSED: f64 = 0.005;
/// Largest share of time that the generator's threads may use or wait for a CPU, in a closed model.
const MAX_BUSY: f64 = 0.95;
/// Largest share of time that the threads may wait for a CPU or be throttled.
const MAX_WAIT: f64 = 0.05;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Health {
    #[serde(rename = "send_lag_p99_ns", with = "loadline_analysis::wire::nanos")]
    pub send_lag_p99: Duration,
    #[serde(rename = "send_lag_p99_9_ns", with = "loadline_analysis::wire::nanos")]
    pub send_lag_p99_9: Duration,
    #[serde(rename = "send_lag_max_ns", with = "loadline_analysis::wire::nanos")]
    pub send_lag_max: Duration,
    /// Share of requests sent later than ten times the limit, in [0, 1].
    pub missed: f64,
    #[serde(rename = "cpu_ns", with = "loadline_analysis::wire::nanos")]
    pub cpu: Duration,
    /// Time its threads were runnable but had no CPU, summed.
    #[serde(rename = "run_delay_ns", with = "loadline_analysis::wire::nanos")]
    pub run_delay: Duration,
    #[serde(rename = "throttled_ns", with = "loadline_analysis::wire::nanos")]
    pub throttled: Duration,
    /// `None`, or why the generator was itself the bottleneck.
    pub saturated: Option<String>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GeneratorUsage {
    pub(crate) cpu: Duration,
    pub(crate) run_delay: Duration,
    pub(crate) throttled: Duration,
    /// Time that a hypervisor took from the CPUs of this machine, if reported.
    pub(crate) stolen: Duration,
}

impl GeneratorUsage {
    /// What kept the generator from its CPUs in `wall` seconds of theirs, in words; empty when
    /// nothing is known. Each wake-up waits some µs for its CPU: that is not worth a word.
    fn describe_hindrance(&self, wall: f64) -> String {
        let waited = if self.run_delay.as_secs_f64() > MAX_WAIT * wall {
            self.run_delay
        } else {
            Duration::ZERO
        };
        let known = [
            (waited, "it waited", "for a CPU"),
            (self.throttled, "its cgroup was throttled for", "in all"),
            (self.stolen, "a hypervisor took", "from this machine's CPUs"),
        ];
        known
            .iter()
            .filter(|(time, _, _)| *time >= Duration::from_millis(1))
            .map(|(time, before, after)| format!("; {before} {} ms {after}", time.as_millis()))
            .collect()
    }
}

impl Health {
    /// Judges one run; `wall` is its length without the drain.
    pub(crate) fn judge_run(
        plan: &LoadPlan,
        totals: &LoadTotals,
        usage: GeneratorUsage,
        wall: Duration,
    ) -> Self {
        let lag = &totals.send_lag;
        // What the pacing grid adds is asked for.
        let limit = MAX_LAG.max(plan.slo.unwrap_or_default() / 10) + plan.pacing_quantum();
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let at = |q| Duration::from_nanos(lag.value_at_quantile(q));
        let late = lag.len() - lag.count_between(0, limit_ns.saturating_mul(10));
        let mut health = Self {
            send_lag_p99: at(0.99),
            send_lag_p99_9: at(0.999),
            send_lag_max: Duration::from_nanos(lag.max()),
            missed: late as f64 / lag.len().max(1) as f64,
            cpu: usage.cpu,
            run_delay: usage.run_delay,
            throttled: usage.throttled,
            saturated: None,
        };
        let wall = wall.as_secs_f64() * f64::from(plan.shard_count());
        let late = health.late_sends(limit);
        let late = late.map(|why| why + &usage.describe_hindrance(wall));
        health.saturated = late.or_else(|| health.machine_shortfall(plan, totals, wall));
        health
    }

    fn late_sends(&self, limit: Duration) -> Option<String> {
        if self.send_lag_p99 > limit {
            return Some(format!(
                "the generator sent 1 % of the requests more than {:.1} ms late (limit {:.1} ms)",
                self.send_lag_p99.as_secs_f64() * 1e3,
                limit.as_secs_f64() * 1e3
            ));
        }
        if self.missed > MAX_MISSED {
            return Some(format!(
                "the generator sent {:.1} % of the requests more than {:.0} ms late",
                self.missed * 100.0,
                limit.as_secs_f64() * 1e4
            ));
        }
        None
    }

    fn machine_shortfall(&self, plan: &LoadPlan, totals: &LoadTotals, wall: f64) -> Option<String> {
        let share = |d: Duration| d.as_secs_f64() / wall.max(1e-9);
        if share(self.throttled) > MAX_WAIT {
            return Some(format!(
                "the generator's own cgroup was throttled for {:.1} s",
                self.throttled.as_secs_f64()
            ));
        }
        if share(self.run_delay) > MAX_WAIT && is_late_from_waiting(plan, totals) {
            return Some(format!(
                "the generator waited {:.0} % of the time for a CPU",
                share(self.run_delay) * 100.0
            ));
        }
        if share(self.cpu) > MAX_BUSY && plan.pacing != Pacing::Spin && is_behind(plan, totals) {
            return Some(format!(
                "the generator used {:.0} % of its CPUs; give it more with --cpus",
                share(self.cpu) * 100.0
            ));
        }
        None
    }
}

fn is_late_from_waiting(plan: &LoadPlan, totals: &LoadTotals) -> bool {
    !matches!(plan.model, LoadModel::Open { .. }) || is_behind(plan, totals)
}

fn is_behind(plan: &LoadPlan, totals: &LoadTotals) -> bool {
    match plan.model {
        LoadModel::Open { .. } => {
            let p99 = totals.latency.value_at_quantile(0.99);
            let waited = p99 > 2 * totals.service_time.value_at_quantile(0.99);
            waited || totals.unfinished + totals.failed_requests() > 0
        }
        LoadModel::ClosedFor { .. } | LoadModel::ClosedRequests { .. } => true,
    }
}

pub(crate) fn thread_run_delay() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let delay = text.split_whitespace().nth(1).and_then(|f| f.parse().ok());
    Duration::from_nanos(delay.unwrap_or(0))
}

/// Time that a hypervisor took from all CPUs of this machine since it started.
pub(crate) fn stolen_time() -> Duration {
    parse_stolen_time(
        &fs::read_to_string("/proc/stat").unwrap_or_default(),
        clock_ticks_per_second(),
    )
}

fn parse_stolen_time(stat: &str, ticks_per_second: u64) -> Duration {
    let mut lines = stat.lines();
    let field = lines.next().and_then(|l| l.split_whitespace().nth(8));
    let ticks: u64 = field.and_then(|f| f.parse().ok()).unwrap_or(0);
    Duration::from_secs_f64(ticks as f64 / ticks_per_second.max(1) as f64)
}

pub(crate) fn throttled_time() -> Duration {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    cpu_groups(&own)
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .map(|text| parse_throttled_time(&text))
        .sum()
}

/// The cpu.stat files of the groups named in /proc/self/cgroup. Mount points are the usual ones:
/// a place where they differ costs this one hint, not the measurement.
fn cpu_groups(own: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let mount = if controllers.is_empty() {
            "/sys/fs/cgroup".to_owned()
        } else if controllers.split(',').any(|c| c == "cpu") {
            format!("/sys/fs/cgroup/{controllers}")
        } else {
            continue;
        };
        let mut path = path.trim_matches('/');
        loop {
            files.push(PathBuf::from(format!("{mount}/{path}/cpu.stat")));
            match path.rsplit_once('/') {
                Some((above, _)) => path = above,
                None => break,
            }
        }
    }
    files
}

/// v1 counts `throttled_time` in ns, v2 `throttled_usec` in µs.
fn parse_throttled_time(cpu_stat: &str) -> Duration {
    let value = |name: &str| {
        let line = cpu_stat.lines().find_map(|l| l.strip_prefix(name));
        line.and_then(|v| v.trim().parse::<u64>().ok())
    };
    match (value("throttled_time "), value("throttled_usec ")) {
        (Some(nanos), _) => Duration::from_nanos(nanos),
        (None, Some(micros)) => Duration::from_micros(micros),
        (None, None) => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttling_is_read_in_the_unit_of_its_kernel() {
        let v1 = "nr_periods 10\nnr_throttled 2\nthrottled_time 5000000\n";
        let v2 = "usage_usec 7\nnr_throttled 2\nthrottled_usec 5000\n";
        assert_eq!(parse_throttled_time(v1), Duration::from_millis(5));
        assert_eq!(parse_throttled_time(v2), Duration::from_millis(5));
        assert_eq!(parse_throttled_time("usage_usec 7\n"), Duration::ZERO);
    }

    #[test]
    fn what_kept_the_generator_from_its_cpus_is_named() {
        let stat = "cpu  10 0 20 70 5 0 1 25 0 0\ncpu0 1 0 1 1 1 0 0 9 0 0\n";
        assert_eq!(parse_stolen_time(stat, 100), Duration::from_millis(250));
        assert_eq!(parse_stolen_time("", 100), Duration::ZERO);
        let usage = GeneratorUsage {
            run_delay: Duration::from_millis(120),
            stolen: Duration::from_millis(250),
            ..GeneratorUsage::default()
        };
        assert_eq!(
            usage.describe_hindrance(2.0),
            "; it waited 120 ms for a CPU; a hypervisor took 250 ms from this machine's CPUs"
        );
        assert_eq!(
            usage.describe_hindrance(10.0),
            "; a hypervisor took 250 ms from this machine's CPUs"
        );
        assert_eq!(GeneratorUsage::default().describe_hindrance(2.0), "");
    }

    #[test]
    fn every_group_above_counts_too() {
        let files = cpu_groups("3:cpu,cpuacct:/a/b\n2:memory:/x\n0::/c\n");
        let files: Vec<_> = files.iter().map(|f| f.to_str().unwrap()).collect();
        assert_eq!(
            files,
            [
                "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.stat",
                "/sys/fs/cgroup/cpu,cpuacct/a/cpu.stat",
                "/sys/fs/cgroup/c/cpu.stat",
            ]
        );
    }
}
