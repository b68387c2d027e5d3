//! fabric8 run-java.sh: half of the limit on JDK 8 and 9, no option from 10 on.
//!
//! Source: behaviour of fabric8io-images/run-java-sh.

use super::LauncherOutput;
use crate::options::JvmOptionSet;
use crate::{Bytes, Cpus, JavaVersion};

/// The limit up to which it takes a quarter and C1 alone.
const SMALL: Bytes = Bytes::from_mib(300);

#[derive(Debug, Clone, Copy)]
pub struct Fabric8Input<'a> {
    pub limit: Option<Bytes>,
    pub cpus: Option<Cpus>,
    pub jdk: JavaVersion,
    /// `JAVA_MAX_MEM_RATIO`, a percentage; 0 is off.
    pub max_ratio: Option<u64>,
    /// `JAVA_INIT_MEM_RATIO`, a percentage; 0 is off.
    pub init_ratio: Option<u64>,
    pub options: &'a JvmOptionSet,
}

pub fn calculate(input: &Fabric8Input<'_>) -> LauncherOutput {
    let is_tuned = input.jdk.feature < 10;
    let mut options = memory_options(input, is_tuned);
    if is_tuned {
        options.extend(cpu_options(input));
        options.extend(collector_options());
    }
    options.push("-XX:+ExitOnOutOfMemoryError".to_owned());
    LauncherOutput {
        options,
        leaves_out: "every native region, its own cgroup path and ancestors; nothing is tuned from JDK 10 on",
    }
}

fn memory_options(input: &Fabric8Input<'_>, is_tuned: bool) -> Vec<String> {
    if input.options.is_set("MaxHeapSize") {
        return Vec::new();
    }
    let Some(limit) = input.limit else {
        return Vec::new();
    };
    let mut options = Vec::new();
    if let Some(ratio) = input.init_ratio.filter(|ratio| *ratio > 0) {
        options.push(format!("-Xms{}m", share_mib(limit, ratio)));
    }
    let is_small = limit <= SMALL;
    let own = is_tuned.then_some(if is_small { 25 } else { 50 });
    let ratio = input.max_ratio.or(own).filter(|ratio| *ratio > 0);
    options.extend(ratio.map(|ratio| format!("-Xmx{}m", share_mib(limit, ratio))));
    if is_tuned && is_small && input.max_ratio.is_none() {
        options.push("-XX:TieredStopAtLevel=1".to_owned());
    }
    options
}

/// Whole MiB, half rounded up.
fn share_mib(limit: Bytes, percent: u64) -> u64 {
    let mib = Bytes::from_mib(1).as_bytes();
    (limit.mul_ratio(percent, 100).as_bytes() + mib / 2) / mib
}

fn cpu_options(input: &Fabric8Input<'_>) -> Vec<String> {
    let Some(cpus) = input.cpus else {
        return Vec::new();
    };
    let count = cpus.ceil().max(1);
    let is_c1_only = input.limit.is_some_and(|limit| limit <= SMALL) && input.max_ratio.is_none();
    let compilers = compiler_count(count, is_c1_only);
    vec![
        format!("-XX:ParallelGCThreads={count}"),
        format!("-XX:ConcGCThreads={count}"),
        format!("-Djava.util.concurrent.ForkJoinPool.common.parallelism={count}"),
        format!("-XX:CICompilerCount={compilers}"),
    ]
}

/// HotSpot's own formula of JDK 8; with C1 alone only its part.
fn compiler_count(cpus: u32, is_c1_only: bool) -> u32 {
    let log = cpus.ilog2();
    let count = (log * log.max(1).ilog2()).max(1) * 3 / 2;
    let c1 = (count / 3).max(1);
    let c2 = count.saturating_sub(c1).max(1);
    if is_c1_only { c1 } else { c1 + c2 }
}

fn collector_options() -> Vec<String> {
    [
        "-XX:+UseParallelGC",
        "-XX:GCTimeRatio=4",
        "-XX:AdaptiveSizePolicyWeight=90",
        "-XX:MinHeapFreeRatio=20",
        "-XX:MaxHeapFreeRatio=40",
    ]
    .map(str::to_owned)
    .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calculate(limit: Bytes, cpus: &str, jdk: u32, ratios: (u64, u64)) -> String {
        let ratio = |ratio| (ratio > 0).then_some(ratio);
        let answer = super::calculate(&Fabric8Input {
            limit: Some(limit),
            cpus: Some(cpus.parse().unwrap()),
            jdk: JavaVersion::from_feature(jdk),
            max_ratio: ratio(ratios.0),
            init_ratio: ratio(ratios.1),
            options: &JvmOptionSet::none(),
        });
        answer.options.join(" ")
    }

    // Expected values: output of the script itself.
    #[test]
    fn equals_the_recorded_output_of_the_script() {
        assert_eq!(
            calculate(Bytes::from_gib(1), "1.5", 8, (0, 0)),
            "-Xmx512m -XX:ParallelGCThreads=2 -XX:ConcGCThreads=2 \
             -Djava.util.concurrent.ForkJoinPool.common.parallelism=2 -XX:CICompilerCount=2 \
             -XX:+UseParallelGC -XX:GCTimeRatio=4 -XX:AdaptiveSizePolicyWeight=90 \
             -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40 -XX:+ExitOnOutOfMemoryError"
        );
        assert_eq!(
            calculate(Bytes::from_gib(1), "1.5", 17, (75, 25)),
            "-Xms256m -Xmx768m -XX:+ExitOnOutOfMemoryError"
        );
        let many = calculate(Bytes::from_gib(2), "10", 8, (80, 0));
        assert!(
            many.starts_with("-Xmx1638m -XX:ParallelGCThreads=10"),
            "{many}"
        );
        assert!(many.contains("CICompilerCount=4"), "{many}");
        let small = calculate(Bytes::from_mib(300), "1.5", 8, (0, 0));
        assert!(
            small.starts_with("-Xmx75m -XX:TieredStopAtLevel=1"),
            "{small}"
        );
        assert!(small.contains("CICompilerCount=1 "), "{small}");
    }
}
