//! A remote engine: loadline can neither make nor see its containers' cgroups. It is on another
//! machine or in a virtual one, it leaves cgroups to systemd, or loadline may make none here.
//!
//! Owns the objects made there for a trial, and leftovers of a killed loadline. A trial is two
//! containers that share PID namespace, network and a directory, like the containers of a pod: the
//! first is loadline's own ([`crate::pod`] runs in it), the second the application's, which starts
//! when the first is ready to watch it. The engine enforces the limits. Only the engine's program
//! is used, so any connection to a daemon (ssh, TLS, a context) works for loadline too. Facts:
//! docker-create(1), podman-create(1); both take `--pid=container:` and `--network=container:`.

mod look;
mod own_image;
mod pair;
mod tar;

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use loadline_cgroup::GroupName;
use loadline_protocol::{ContainerEngine, RunRefusal};

use crate::clock::monotonic_ns;
use crate::oci::engine::{self, EngineError};
use crate::sweep::{client_id, is_dead_of_ours};

pub use look::probe_image;
pub use pair::{ApartContainers, ContainerEnd, unsupported_apart};

const LABEL: &str = "loadline.apart";
const CLIENT: &str = "loadline.client";
const WORK: &str = "/work";
const TMP: &str = "/application-tmp";

fn owned_name(what: &str) -> Result<String, RunRefusal> {
    let name = GroupName::new(Path::new("/proc"), what);
    name.map(|name| name.to_string())
        .map_err(|error| crate::halt::cgroup_refusal("naming a container", &error))
}

fn unique_suffix() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{number}", monotonic_ns())
}

fn labels(of: &str) -> [String; 2] {
    [
        format!("--label={LABEL}={of}"),
        format!("--label={CLIENT}={}", client_id()),
    ]
}

fn remove_containers(
    engine: &ContainerEngine,
    containers: &[&str],
    volume: Option<&str>,
) -> Result<(), EngineError> {
    for name in containers {
        // podman would ask it first, for ten seconds.
        let _ = engine::run(engine, &["kill", "--signal=KILL", name]);
    }
    for name in containers {
        crate::oci::remove_by_name(engine, name)?;
    }
    match volume.map(|name| engine::run(engine, &["volume", "rm", "--force", name])) {
        Some(Err(error)) if !error.said.to_lowercase().contains("no such volume") => Err(error),
        _ => Ok(()),
    }
}

#[derive(Debug, Default)]
pub struct EngineSweep {
    pub containers: Vec<String>,
    pub volumes: Vec<String>,
    pub failures: Vec<String>,
}

/// Removes objects of dead loadlines from an engine, if they were made since this machine started.
/// Other users' objects stay, because their processes cannot be seen from here. An engine that does
/// not answer is skipped.
pub fn sweep_engine(engine: &ContainerEngine) -> EngineSweep {
    let filter = format!("label={CLIENT}={}", client_id());
    let list = |words: &[&str], format: &str| {
        let rest = ["--filter", filter.as_str(), "--format", format];
        let all = [words, &rest].concat();
        let names = engine::run(engine, &all).unwrap_or_default();
        let dead = names.lines().filter(|name| is_dead_of_ours(name));
        dead.map(str::to_owned).collect::<Vec<_>>()
    };
    pair::sweep_variables(&std::env::temp_dir());
    let mut swept = EngineSweep::default();
    // What shares another's namespaces goes first: podman removes it in no other order.
    let mut containers = list(&["ps", "--all"], "{{.Names}}");
    containers.sort_by_key(|name| name.ends_with(pair::OWN));
    for name in containers {
        match remove_containers(engine, &[&name], None) {
            Ok(()) => swept.containers.push(name),
            Err(error) => swept.failures.push(format!("{name}: {error}")),
        }
    }
    for name in list(&["volume", "ls"], "{{.Name}}") {
        match remove_containers(engine, &[], Some(&name)) {
            Ok(()) => swept.volumes.push(name),
            Err(error) => swept.failures.push(format!("{name}: {error}")),
        }
    }
    swept
}

pub fn remove_images(engine: &ContainerEngine) -> usize {
    own_image::remove_all(engine)
}
