//! Inspects the application's image on a node of the cluster: facts that the API server does not
//! have.
//!
//! Owns the facts: the JVM in the image and its variables, the node's kind, and whether its runtime
//! enforces limits at all (gVisor does not). It runs in a container of the image with limits of
//! [`QUOTA_MILLIS`] and [`MEMORY_MIB`], as the image's program; a second container takes four times
//! its memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loadline_analysis::record::MachineDescription;
use loadline_cgroup::ControlGroup;
use loadline_jvm::detect::{InstalledJdk, JdkVersion};
use loadline_load::process_cpu;
use loadline_protocol::{Account, RunRefusal};
use loadline_sizing::Vm;
use rustix::process::{getegid, geteuid};
use serde::{Deserialize, Serialize};

use super::MARK;
use crate::site::{Site, SiteOptions};
use crate::{cpus, oci, pagecache};

pub const QUOTA_MILLIS: u32 = 200;
pub const MEMORY_MIB: u32 = 64;

/// Memory that is taken where the limit is [`MEMORY_MIB`], bytes.
const FILLED: usize = (MEMORY_MIB as usize) << 22;

const PERIOD: Duration = Duration::from_millis(100);

/// Longest time until a node that is busy gives it more CPU than its limit.
const SPIN: Duration = Duration::from_secs(5);

const WANTED: [&str; 2] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImageReading {
    pub machine: MachineDescription,
    pub env: BTreeMap<String, String>,
    pub jdk: Option<ImageJdk>,
    /// The account it ran as: the image's own user by default.
    #[serde(default)]
    pub account: Option<Account>,
    #[serde(default)]
    pub cpus: Vec<u32>,
    /// Whether its CPU limit held it back; `None` where the node gave it no more than that anyway and no
    /// counter says why.
    pub is_limited: Option<bool>,
    /// CFS periods with throttling until that was clear; `None` if no counter shows it.
    #[serde(default)]
    pub throttled_periods: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImageJdk {
    home: PathBuf,
    java: PathBuf,
    version: String,
    vendor: String,
    is_openj9: bool,
    modules: Vec<String>,
}

impl ImageJdk {
    fn from_jdk(jdk: InstalledJdk) -> Self {
        Self {
            home: jdk.home,
            java: jdk.java,
            version: jdk.version.full,
            vendor: jdk.vendor,
            is_openj9: jdk.kind == Vm::OpenJ9,
            modules: jdk.modules,
        }
    }

    pub fn to_jdk(&self) -> Option<InstalledJdk> {
        let version = JdkVersion::from_version_text(&self.version)?;
        Some(InstalledJdk {
            name: version.feature.to_string(),
            home: self.home.clone(),
            java: self.java.clone(),
            version,
            vendor: self.vendor.clone(),
            kind: if self.is_openj9 {
                Vm::OpenJ9
            } else {
                Vm::HotSpot
            },
            modules: self.modules.clone(),
        })
    }
}

pub fn probe_from_inside() -> Result<ImageReading, RunRefusal> {
    in_pod()?;
    let site = Site::detect_site(SiteOptions::in_pod(None))?;
    let env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let jdk = oci::image::jdk_of_this_root(&env);
    // The first trial pays for its files, as all do.
    for path in oci::image::directories_of_this_root() {
        pagecache::evict_from_page_cache(&path, pagecache::WHOLE);
    }
    let is_wanted = |(name, _): &(String, String)| WANTED.contains(&name.as_str());
    let (is_limited, throttled_periods) = probe_throttling();
    Ok(ImageReading {
        machine: site.describe_machine(),
        jdk: jdk.map(ImageJdk::from_jdk),
        account: Some(Account {
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
        }),
        cpus: cpus::available_cpus().unwrap_or_default(),
        env: env.into_iter().filter(is_wanted).collect(),
        is_limited,
        throttled_periods,
    })
}

/// Takes [`FILLED`] of memory, which a container with an enforced limit does not survive. Errors:
/// [`RunRefusal`] outside of a pod.
pub fn fill_memory() -> Result<(), RunRefusal> {
    in_pod()?;
    // Pages that are never written are never there.
    let taken = vec![1u8; FILLED];
    std::hint::black_box(&taken);
    Ok(())
}

fn in_pod() -> Result<(), RunRefusal> {
    match std::env::var_os(MARK) {
        Some(_) => Ok(()),
        None => Err(RunRefusal::new(
            "looking from inside a pod",
            "this is a part of loadline, which it starts itself",
            "see `loadline --help` for the commands to use",
        )),
    }
}

/// Uses CPU until its group's counter says that it was throttled, or it has used more than its limit
/// allows by the process's own clock, which every runtime has. Gives also in how many periods it was
/// throttled.
fn probe_throttling() -> (Option<bool>, Option<u64>) {
    let group = ControlGroup::of_process(Path::new("/proc"), std::process::id()).ok();
    let throttled = || group.as_ref()?.read().ok()?.cpu.nr_throttled;
    let ((before, used_before), begin) = ((throttled(), process_cpu()), Instant::now());
    while begin.elapsed() < SPIN {
        let step = Instant::now();
        while step.elapsed() < PERIOD {
            std::hint::spin_loop();
        }
        let both = throttled().zip(before);
        let periods = both.map(|(now, then)| now.saturating_sub(then));
        if periods.is_some_and(|periods| periods > 0) {
            return (Some(true), periods);
        }
        if process_cpu().saturating_sub(used_before) > allowed_cpu_time(begin.elapsed()) {
            return (Some(false), periods);
        }
    }
    (None, None)
}

/// The most CPU time that a limit allows in this wall time: the quota of each period begun, and the
/// unused quota of one.
fn allowed_cpu_time(wall: Duration) -> Duration {
    let periods = u32::try_from(wall.as_millis() / PERIOD.as_millis()).unwrap_or(u32::MAX);
    let each = PERIOD * QUOTA_MILLIS / 1000;
    each.saturating_mul(periods.saturating_add(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_looks_outside_of_a_pod() {
        let refusal = probe_from_inside().expect_err("it is none");
        assert!(refusal.hint.contains("--help"), "{refusal}");
    }

    #[test]
    fn more_than_a_limit_lets_through_is_told_from_a_busy_node() {
        let ms = Duration::from_millis;
        assert_eq!(allowed_cpu_time(ms(400)), ms(160));
        assert!(
            ms(400) > allowed_cpu_time(ms(400)),
            "a whole CPU is too much"
        );
        assert!(ms(80) < allowed_cpu_time(ms(400)), "its limit is not");
    }

    #[test]
    fn a_jdk_is_the_same_after_its_way() {
        let seen = ImageJdk {
            home: "/opt/java".into(),
            java: "/opt/java/bin/java".into(),
            version: "25.0.1+8".to_owned(),
            vendor: "temurin".to_owned(),
            is_openj9: false,
            modules: vec!["java.base".to_owned()],
        };
        let jdk = seen.to_jdk().expect("it has a version");
        assert_eq!((jdk.name.as_str(), jdk.kind), ("25", Vm::HotSpot));
        assert_eq!(ImageJdk::from_jdk(jdk), seen);
    }
}
