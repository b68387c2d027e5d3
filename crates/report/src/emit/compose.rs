//! The Compose file: the measured limits on one machine.
//!
//! Source: the Compose specification, services (cpus, mem_limit, memswap_limit, shm_size,
//! stop_grace_period).

use super::container::UID;
use super::facts::{Facts, SHM};
use super::yaml::{Yaml, entry, list, map};
use crate::format;

/// The file.
pub fn compose(facts: &Facts<'_>) -> String {
    let application = facts.application;
    let memory = facts.memory.value.jvm();
    let mut service = vec![
        entry("image", application.image.clone()),
        entry("build", map([entry("context", ".")])),
        entry("user", format!("{UID}:{UID}")),
        entry("mem_limit", memory.clone()).because(&*facts.memory.because),
        entry("memswap_limit", memory)
            .because("as in the trials: no swap; a JVM that swaps keeps no latency objective"),
    ];
    if let Some(shm) = facts.shm {
        service.push(entry("shm_size", shm.jvm()).because(SHM));
    }
    if let Some(cpu) = &facts.cpu {
        service.push(entry("cpus", format!("{}", cpu.value.as_f64())).because(&*cpu.because));
    }
    service.push(
        entry(
            "stop_grace_period",
            format!("{}s", facts.grace.value.as_secs()),
        )
        .because(&*facts.grace.because),
    );
    if !facts.variables.is_empty() {
        let variables = facts.variables.iter().map(|v| match &v.value {
            // Compose substitutes variables: a dollar sign is written twice.
            Some(value) => entry(v.name.clone(), value.replace('$', "$$")),
            None => entry(v.name.clone(), format!("${{{}:?set it}}", v.name))
                .because("a secret, or no single line: taken from the environment of compose"),
        });
        service.push(entry("environment", map(variables)));
    }
    service.extend([
        entry(
            "ports",
            list([Yaml::from(format!("{0}:{0}", application.port))]),
        ),
        entry("read_only", true),
        entry("volumes", list([Yaml::from("/tmp")]))
            .because("on disk, as in the trials: a tmpfs would count towards the memory limit"),
        entry("cap_drop", list([Yaml::from("ALL")])),
        entry("security_opt", list([Yaml::from("no-new-privileges:true")])),
        entry("restart", "unless-stopped"),
    ]);
    let part = part(facts);
    let header: String = facts
        .origin
        .iter()
        .chain(&part)
        .chain(&facts.left_out)
        .map(|line| format!("# {line}\n"))
        .collect();
    let document = map([entry(
        "services",
        map([entry(facts.slug.clone(), map(service))]),
    )]);
    header + &document.document()
}

/// Compose starts one container; a deployment of several is more than it.
fn part(facts: &Facts<'_>) -> Option<String> {
    let chosen = &facts.deployment.filter(|d| d.chosen.replicas > 1)?;
    Some(format!(
        "This starts one of the {} containers that carry {} together; it is good for {}.",
        chosen.chosen.replicas,
        format::rate(chosen.rate),
        format::rate(chosen.each)
    ))
}
