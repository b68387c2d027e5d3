//! The Compose file: the measured limits on one machine.
//!
//! Source: the Compose specification, services (cpus, cpu_shares, mem_limit, memswap_limit, shm_size,
//! stop_grace_period), deploy (resources.reservations).

use super::container::UID;
use super::facts::{EmitFacts, SHM};
use super::yaml::{Yaml, yaml_entry, yaml_list, yaml_map};
use crate::format;

pub fn compose(facts: &EmitFacts<'_>) -> String {
    let application = facts.application;
    let memory = facts.memory.value.to_jvm_size();
    let mut service = vec![
        yaml_entry("image", application.image.clone()),
        yaml_entry("build", [yaml_entry("context", ".")]),
        yaml_entry("user", format!("{UID}:{UID}")),
        yaml_entry("mem_limit", memory.clone()).because(&*facts.memory.because),
        yaml_entry("memswap_limit", memory)
            .because("as in the trials: no swap; a JVM that swaps keeps no latency objective"),
    ];
    if let Some(shm) = facts.shm {
        service.push(yaml_entry("shm_size", shm.to_jvm_size()).because(SHM));
    }
    if let Some(cpu) = &facts.cpu {
        service.push(yaml_entry("cpus", format!("{}", cpu.value.as_f64())).because(&*cpu.because));
    }
    if let Some(request) = &facts.cpu_request {
        let cpus = yaml_entry("cpus", format!("{}", request.value.as_f64()));
        let reservations = yaml_map([yaml_entry("reservations", [cpus])]);
        let deploy = yaml_entry("deploy", [yaml_entry("resources", reservations)]);
        service.push(deploy.because(&*request.because));
        let shares = u64::from(request.value.as_millis()) * 1024 / 1000;
        service.push(
            yaml_entry("cpu_shares", shares.max(2))
                .because("the weight that Kubernetes gives this request; Docker on one machine reads no reservation of CPU"),
        );
    }
    let grace = format!("{}s", facts.grace.value.as_secs());
    service.push(yaml_entry("stop_grace_period", grace).because(&*facts.grace.because));
    if !facts.variables.is_empty() {
        let variables = facts.variables.iter().map(|v| match &v.value {
            // Compose substitutes variables: a dollar sign is written twice.
            Some(value) => yaml_entry(v.name.clone(), value.replace('$', "$$")),
            None => yaml_entry(v.name.clone(), format!("${{{}:?set it}}", v.name))
                .because("a secret, or no single line: taken from the environment of compose"),
        });
        service.push(yaml_entry("environment", yaml_map(variables)));
    }
    service.extend(application.port.map(|port| {
        let published = Yaml::from(format!("{port}:{port}"));
        yaml_entry("ports", yaml_list([published]))
    }));
    service.extend([
        yaml_entry("read_only", true),
        yaml_entry("volumes", yaml_list(["/tmp"]))
            .because("on disk, as in the trials: a tmpfs would count towards the memory limit"),
        yaml_entry("cap_drop", yaml_list(["ALL"])),
        yaml_entry("security_opt", yaml_list(["no-new-privileges:true"])),
        yaml_entry("restart", "unless-stopped"),
    ]);
    let part = replica_note(facts);
    let notes = facts.origin.iter().chain(&part).chain(&facts.left_out);
    let header: String = notes.map(|line| format!("# {line}\n")).collect();
    let services = [yaml_entry(facts.slug.clone(), yaml_map(service))];
    let document = yaml_map([yaml_entry("services", services)]);
    header + &document.with_short_comments().to_document()
}

/// Compose starts one container; a deployment of several is more than it.
fn replica_note(facts: &EmitFacts<'_>) -> Option<String> {
    let chosen = &facts.deployment.filter(|d| d.chosen.replicas > 1)?;
    Some(format!(
        "This starts one of the {} containers that carry {} together; it is good for {}.",
        chosen.chosen.replicas,
        format::as_rate(chosen.rate),
        format::as_rate(chosen.each)
    ))
}
