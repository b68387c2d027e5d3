//! Inspects an application's image on a remote engine, before the first trial.
//!
//! Owns the two containers of the inspection: the image with this program as its entry point, which
//! reports its JVM and user and whether the CPU limit worked, and loadline's own image, which must
//! be killed for its memory. [`crate::pod::probe_from_inside`] does the inspection.

use std::time::Duration;

use loadline_analysis::foreign_text::indented_line;
use loadline_protocol::{ContainerEngine, RunRefusal};
use loadline_sizing::{Bytes, Cpus};

use super::own_image::{self, LinkedProgram, PROGRAM};
use super::tar::TarArchive;
use super::{labels, owned_name, remove_containers, unique_suffix};
use crate::oci::{self, engine};
use crate::pod::{ImageReading, MARK, MEMORY_MIB, QUOTA_MILLIS};

/// Where the program lies in the image: [`crate::pod::probe_from_inside`] takes no file of there for the image's.
const BELOW: &str = "/loadline";

/// Exit code after signal 9.
const KILLED: i32 = 137;

const HINT: &str = "on cgroup v2 a user's podman needs the controllers delegated (cpu, cpuset, memory, pids: Delegate= of user@.service); else measure where the engine runs, as root: docs/guides/images.md";

/// Looks into an image by its id; takes two seconds.
/// Errors: [`RunRefusal`]: what the engine said, or a limit that held nothing.
pub fn probe_image(engine: &ContainerEngine, id: &str) -> Result<ImageReading, RunRefusal> {
    let seen = probe_inside(engine, id)?;
    if seen.is_limited == Some(false) {
        let why = "a container that used more than its CPU limit was not throttled";
        return Err(unenforced_limit(engine, why));
    }
    // A `clean` next to it may remove the image before its container is made.
    let filled = fill_exit_code(engine).or_else(|_| fill_exit_code(engine))?;
    if filled != Some(KILLED) {
        let why = "a container that took more than its memory limit was not killed";
        return Err(unenforced_limit(engine, why));
    }
    Ok(seen)
}

fn unenforced_limit(engine: &ContainerEngine, why: &str) -> RunRefusal {
    let what = format!("limits of {}", engine.kind);
    let why = format!("{why}: its runtime does not enforce them");
    RunRefusal::new(what, why, HINT)
}

fn probe_failed(engine: &ContainerEngine) -> impl Fn(String) -> RunRefusal {
    let what = format!("looking into the image by {}", engine.kind);
    move |why| RunRefusal::new(&what, why, HINT)
}

fn probe_inside(engine: &ContainerEngine, id: &str) -> Result<ImageReading, RunRefusal> {
    let failed = probe_failed(engine);
    let program = LinkedProgram::of_this_process().map_err(|e| failed(e.to_string()))?;
    let mut tar = TarArchive::default();
    let packed = tar
        .add_directory(BELOW, 0o755)
        .and_then(|()| program.pack(&mut tar, BELOW, true));
    packed.map_err(|e| failed(e.to_string()))?;
    let command = program.flat_command(BELOW);
    let (first, rest) = command.split_first().ok_or_else(|| failed(String::new()))?;
    let entrypoint = format!("--entrypoint={first}");
    let looking = ProbeContainer::make_probe(engine, &[&entrypoint], id, rest, "pod-look")?;
    engine::unpack_into(engine, &looking.name, "/", &tar.finish_archive())
        .map_err(|e| failed(e.to_string()))?;
    let text = engine::run_within(engine, &["start", "--attach", &looking.name], DEADLINE);
    let text = text.map_err(|e| failed(e.to_string()))?;
    serde_json::from_str(text.trim()).map_err(|error| {
        let last = indented_line(text.lines().last().unwrap_or_default());
        failed(format!("it said `{last}`: {error}"))
    })
}

/// How long a look may take; half a second as a rule.
const DEADLINE: Duration = Duration::from_secs(60);

fn fill_exit_code(engine: &ContainerEngine) -> Result<Option<i32>, RunRefusal> {
    let own = own_image::ensure_image(engine)?;
    let words = [PROGRAM.to_owned()];
    let looking = ProbeContainer::make_probe(engine, &[], &own, &words, "pod-look --fill")?;
    // It fails, as it should: its code is asked for.
    let _ = engine::run_within(engine, &["start", "--attach", &looking.name], DEADLINE);
    let code = ["inspect", "--format", "{{.State.ExitCode}}", &looking.name];
    let code = engine::run(engine, &code).map_err(|e| probe_failed(engine)(e.to_string()))?;
    Ok(code.trim().parse().ok())
}

struct ProbeContainer<'a> {
    engine: &'a ContainerEngine,
    name: String,
}

impl<'a> ProbeContainer<'a> {
    fn make_probe(
        engine: &'a ContainerEngine,
        flags: &[&str],
        image: &str,
        before: &[String],
        subcommand: &str,
    ) -> Result<Self, RunRefusal> {
        let looking = Self {
            engine,
            name: owned_name(&format!("look-{}", unique_suffix()))?,
        };
        let limits = loadline_cgroup::CgroupLimits {
            cpu_quota: Some(Cpus::from_millis(QUOTA_MILLIS)),
            memory: Some(Bytes::from_mib(u64::from(MEMORY_MIB))),
            ..Default::default()
        };
        let mut all = vec!["create".to_owned(), "--pull=never".to_owned()];
        all.extend(["--name".to_owned(), looking.name.clone()]);
        all.extend(labels("look"));
        all.extend(["--network=none", "--no-healthcheck"].map(str::to_owned));
        all.push(format!("--env={MARK}=look"));
        all.extend(oci::limit_flags(&limits));
        all.extend(oci::ulimits(crate::site::SiteOptions::default().open_files));
        all.extend(flags.iter().map(|flag| (*flag).to_owned()));
        all.push(image.to_owned());
        all.extend(before.iter().cloned());
        all.extend(subcommand.split(' ').map(str::to_owned));
        let made = engine::run(engine, &all);
        made.map_err(|e| probe_failed(engine)(e.to_string()))?;
        Ok(looking)
    }
}

impl Drop for ProbeContainer<'_> {
    fn drop(&mut self) {
        // What cannot be removed now is found by the next sweep.
        let _ = remove_containers(self.engine, &[&self.name], None);
    }
}
