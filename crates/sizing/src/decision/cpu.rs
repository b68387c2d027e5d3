//! CPU: how many processors the JVM shall count, how many collector threads, the common pool.

use super::{DecisionInput, LaunchDecision};
use crate::hotspot::threads::parallel_workers;
use crate::options::dimension::OptionDimension;
use crate::regions::SizeProvenance;

#[derive(Debug, Clone, Copy)]
pub struct Parallelism {
    pub processors: u32,
    pub gc_workers: u32,
}

pub fn decide_cpu(input: &DecisionInput<'_>, decision: &mut LaunchDecision) -> Parallelism {
    let processors = decide_processors(input, decision);
    decide_common_pool(input, processors, decision);
    Parallelism {
        processors,
        gc_workers: gc_workers(input, processors),
    }
}

fn decide_processors(input: &DecisionInput<'_>, decision: &mut LaunchDecision) -> u32 {
    let set = input
        .options
        .count_value("ActiveProcessorCount")
        .filter(|n| *n > 0);
    if let Some(set) = set {
        return u32::try_from(set).unwrap_or(u32::MAX);
    }
    let (wanted, reason) = wanted_processors(input);
    if wanted != input.sight.cpus {
        let option = format!("-XX:ActiveProcessorCount={wanted}");
        decision.add_option(option, SizeProvenance::Calculated, reason);
    }
    wanted
}

/// The truth, except for a pod with a CPU request and no limit: it sees the whole node, although
/// its share under load is the request. Twice the request, at least 2, leaves room to burst.
fn wanted_processors(input: &DecisionInput<'_>) -> (u32, String) {
    let truth = input.limits.true_processor_count();
    // Two shares are what Kubernetes writes for "no request".
    let requested = input
        .limits
        .requested_cpus()
        .filter(|r| r.value.as_millis() > 2);
    match requested {
        Some(requested) if input.limits.quota.is_none() => {
            let burst = requested.value.ceil().saturating_mul(2).max(2);
            let reason =
                format!("no CPU limit, {requested} requested: twice that, at most {truth}");
            (burst.min(truth), reason)
        }
        _ => (truth, "the JVM counts wrongly".to_owned()),
    }
}

/// A fraction of a CPU above whole ones is no CPU for a worker: with 1.5 CPUs two workers use up
/// the quota in three quarters of the period and all threads wait.
fn gc_workers(input: &DecisionInput<'_>, processors: u32) -> u32 {
    let default = parallel_workers(processors);
    let Some(quota) = &input.limits.quota else {
        return default;
    };
    let whole = quota.value.to_cpus().as_millis() / 1000;
    default.min(whole.max(1))
}

/// Before 25, `CompletableFuture` starts a thread a task when the common pool has one worker.
fn decide_common_pool(input: &DecisionInput<'_>, processors: u32, decision: &mut LaunchDecision) {
    let is_free = input.is_free(OptionDimension::CommonPool);
    if is_free && !input.jdk.at_least(25) && processors <= 2 {
        let option = "-Djava.util.concurrent.ForkJoinPool.common.parallelism=2";
        let reason = "with one worker CompletableFuture starts a thread for every task";
        decision.add_option(option, SizeProvenance::Default, reason);
    }
}
