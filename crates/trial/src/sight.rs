//! Whether the JVM of a trial saw the trial's limits. If not, the trial has a warning.
//!
//! Owns the warning. Uses the JVM's own report, the lines `Memory` and `CPUs` of its GC log (JDK 16
//! and later), otherwise the prediction of `loadline_sizing::sight`. Changes nothing: in a
//! container on this kernel the same JVM does not see its limits either. Facts: JDK-8346874,
//! gcInit.cpp.

use std::io::ErrorKind;
use std::path::Path;

use loadline_analysis::record::Configuration;
use loadline_jvm::detect::InstalledJdk as Installed;
use loadline_jvm::gclog::GcLogHeader;
use loadline_sizing::limits::{FileSource, UnreadableFile};
use loadline_sizing::{Bytes, JdkRelease, JvmOptionSet, Vm, sight};

use crate::program::ProgramSpec;

const REMEDY: &str = "in a container on such a kernel it is as blind: set -Xmx and -XX:ActiveProcessorCount, start it through loadline-launch, or take JDK 25";

/// The same for OpenJ9. Source: `isRunningInContainer` of omr, and the grid of
/// `loadline_sizing::openj9`, with rows that it printed with its groups mounted as in a container.
const REMEDY_OPENJ9: &str = "OpenJ9 takes the root of cgroup v1 for its own group where PID 1 is neither init nor systemd; in a container it sees its limits; for trials here set -Xmx and -XX:ActiveProcessorCount";

pub fn blindness(jdk: &Installed) -> Option<(String, &'static str)> {
    if jdk.kind != Vm::HotSpot {
        return None;
    }
    let version = JdkRelease::for_hotspot(jdk.version.full.parse().ok()?);
    let reason = sight::gives_up(version, &MachineFiles, &JvmOptionSet::none())?;
    Some((reason, REMEDY))
}

pub(super) struct MachineFiles;

impl FileSource for MachineFiles {
    fn read(&self, path: &str) -> Result<String, UnreadableFile> {
        std::fs::read_to_string(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => UnreadableFile::Missing,
            _ => UnreadableFile::Refused,
        })
    }
}

/// The warning for a JVM that did not see its limits. `header` is the head of its GC log, `home`
/// its JDK where that is known.
pub(super) fn blindness_warning(
    program: &ProgramSpec,
    configuration: &Configuration,
    header: Option<&GcLogHeader>,
    home: Option<&Path>,
    files: &impl FileSource,
) -> Option<String> {
    let options = JvmOptionSet::from_words(command_words(program));
    let stated = header.and_then(|header| header.jdk.clone());
    let is_openj9 = header.is_some_and(|header| header.is_openj9);
    let installed = || Installed::inspect(home?).ok();
    let hotspot = || installed().filter(|jdk| jdk.kind == Vm::HotSpot);
    let version = stated.or_else(|| Some(hotspot()?.version.full));
    let version = version.filter(|_| !is_openj9);
    let jdk = version
        .and_then(|text| text.parse().ok())
        .map(JdkRelease::for_hotspot);
    let reason = jdk.and_then(|jdk| sight::gives_up(jdk, files, &options));
    let because = reason.as_ref().map(|why| format!(": {why}"));
    let because = because.unwrap_or_default();
    let Some(memory) = header.and_then(|header| header.machine.memory_bytes) else {
        let limit = describe_limits(configuration)?;
        reason?;
        let text = format!("the JVM cannot see its limits ({limit}){because}; {REMEDY}");
        return Some(text);
    };
    let cpus = header.and_then(|header| header.machine.cpus_available);
    let wrong = limit_differences(configuration, Bytes::from_bytes(memory), cpus, &options);
    (!wrong.is_empty()).then(|| {
        let wrong = wrong.join(" and ");
        let remedy = if is_openj9 { REMEDY_OPENJ9 } else { REMEDY };
        format!("the JVM did not see its limits, it took {wrong}{because}; {remedy}")
    })
}

fn limit_differences(
    configuration: &Configuration,
    memory: Bytes,
    cpus: Option<u64>,
    options: &JvmOptionSet,
) -> Vec<String> {
    let mut wrong = Vec::new();
    if let Some(limit) = configuration.memory.filter(|limit| memory > *limit) {
        let mib = memory.as_mib();
        wrong.push(format!("{mib:.0}Mi for its memory (the limit is {limit})"));
    }
    // A count that the user gave is no mistake: large machines are emulated with it.
    let is_given = options.is_set("ActiveProcessorCount");
    if let (Some(quota), Some(count), false) = (configuration.cpu, cpus, is_given)
        && count > u64::from(quota.ceil())
    {
        let text = format!("{count} processors for its own (the limit is {quota} CPU)");
        wrong.push(text);
    }
    wrong
}

fn describe_limits(configuration: &Configuration) -> Option<String> {
    let memory = configuration.memory.map(|limit| format!("{limit} memory"));
    let cpu = configuration.cpu.map(|limit| format!("{limit} CPU"));
    let both: Vec<String> = memory.into_iter().chain(cpu).collect();
    (!both.is_empty()).then(|| both.join(", "))
}

fn command_words(program: &ProgramSpec) -> Vec<String> {
    const VARIABLES: [&str; 4] = [
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "OPENJ9_JAVA_OPTIONS",
        "_JAVA_OPTIONS",
    ];
    let set = VARIABLES.iter().filter_map(|name| program.env.get(*name));
    let set = set.flat_map(|text| text.split_whitespace().map(str::to_owned));
    set.chain(program.command.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use loadline_sizing::Cpus;

    use super::*;

    /// The kernel's list of user-mode Linux 6.1, which has no cpusets.
    struct WithoutCpuset;

    impl FileSource for WithoutCpuset {
        fn read(&self, path: &str) -> Result<String, UnreadableFile> {
            match path {
                "/proc/cgroups" => Ok("cpu\t0\t1\t1\ncpuacct\t0\t1\t1\nmemory\t0\t1\t1\n".into()),
                "/proc/self/mountinfo" => {
                    Ok("20 19 0:18 / /sys/fs/cgroup rw - cgroup2 none rw\n".into())
                }
                _ => Err(UnreadableFile::Missing),
            }
        }
    }

    fn program(options: &[&str]) -> ProgramSpec {
        let words = ["java"].iter().chain(options);
        ProgramSpec {
            command: words.map(|word| (*word).to_owned()).collect(),
            ..ProgramSpec::default()
        }
    }

    fn limited() -> Configuration {
        Configuration {
            cpu: Some(Cpus::from_millis(900)),
            memory: Some(Bytes::from_mib(256)),
            ..Configuration::default()
        }
    }

    fn header(jdk: &str, memory: Option<u64>, cpus: u64) -> GcLogHeader {
        let mut header = GcLogHeader::default();
        header.jdk = Some(jdk.to_owned());
        header.machine.memory_bytes = memory.map(|mib| mib << 20);
        header.machine.cpus_available = Some(cpus);
        header
    }

    fn said(header: &GcLogHeader, options: &[&str]) -> Option<String> {
        blindness_warning(
            &program(options),
            &limited(),
            Some(header),
            None,
            &WithoutCpuset,
        )
    }

    #[test]
    fn a_jvm_that_took_the_machine_for_its_own_is_named_with_the_reason() {
        let blind = header("17.0.15+6 (release)", Some(1455), 4);
        insta::assert_snapshot!(said(&blind, &[]).unwrap_or_default(), @"the JVM did not see its limits, it took 1455Mi for its memory (the limit is 256Mi) and 4 processors for its own (the limit is 900m CPU): HotSpot 17.0.15 gives up because /proc/cgroups lists no enabled `cpuset` (as on many kernels from 6.12 on); in a container on such a kernel it is as blind: set -Xmx and -XX:ActiveProcessorCount, start it through loadline-launch, or take JDK 25");
        let given = said(&blind, &["-XX:ActiveProcessorCount=4"]).unwrap_or_default();
        assert!(
            given.contains("1455Mi") && !given.contains("4 processors"),
            "{given}"
        );
    }

    #[test]
    fn openj9_has_its_own_reason_and_is_not_told_to_become_another_jdk() {
        let mut blind = header("41204d221_CMPRSS", Some(24_106), 1);
        blind.is_openj9 = true;
        let text = said(&blind, &[]).unwrap_or_default();
        assert!(
            text.contains("OpenJ9 takes the root of cgroup v1"),
            "{text}"
        );
        assert!(!text.contains("take JDK 25"), "{text}");
        blind.machine.memory_bytes = Some(256 << 20);
        assert_eq!(said(&blind, &[]), None);
    }

    #[test]
    fn a_jvm_that_saw_them_is_not() {
        assert_eq!(said(&header("25.0.3", Some(256), 1), &[]), None);
        // Its own word counts more than the prediction.
        assert_eq!(said(&header("17.0.15", Some(255), 1), &[]), None);
        // No word, but a JDK that can see: no guess against it.
        assert_eq!(said(&header("25.0.3", None, 1), &[]), None);
    }

    #[test]
    fn without_a_word_of_its_own_the_prediction_counts() {
        let text = said(&header("11.0.20", None, 1), &[]).unwrap_or_default();
        assert!(
            text.starts_with(
                "the JVM cannot see its limits (256Mi memory, 900m CPU): HotSpot 11.0.20 gives up"
            ),
            "{text}"
        );
        let (free, header) = (Configuration::default(), header("11.0.20", None, 1));
        let said = blindness_warning(&program(&[]), &free, Some(&header), None, &WithoutCpuset);
        assert_eq!(said, None);
    }
}
