//! From a spec to an application that only has to be started: files, view, limits, namespaces.
//!
//! Owns the order of the steps. Each thing made is owned by a value that removes it when it is
//! dropped: a step that fails leaves nothing of those before.

use std::path::Path;
use std::sync::mpsc::{Sender, channel};

use loadline_cgroup::host::{Memory, outer_conflict, outer_limits};
use loadline_cgroup::{CpuSet, GroupName, Limits};

use super::LocalBackend;
use super::cpus::{self, CpuPlan};
use super::errors::{cgroup_unable, unable};
use super::fleet::Place;
use super::group::{self, TrialGroup};
use super::instance::{LocalInstance, Note, State, line_found, port_is_free, tool_error};
use super::neighbour::Neighbour;
use super::output::{Output, Watch};
use super::protocol::{Order, View};
use super::reach::{self, Needs, Unreachable};
use super::sandbox::{Sandbox, SandboxError};
use super::scratch::{self, Scratch};
use crate::backend::{BackendError, InstanceSpec, Network, Readiness, monotonic_ns};

/// Shares of the generator where it shares CPUs with the application: it must keep its schedule,
/// and it takes little.
const GENERATOR_SHARES: u64 = 16 * 1024;

/// Makes everything but the application's process, for the instance of a trial at this place.
pub(super) fn prepare(
    backend: &mut LocalBackend,
    trial: &InstanceSpec,
    place: Place,
) -> Result<LocalInstance, BackendError> {
    let spec = &trial.of_instance(place.index);
    refuse_taken_ports(spec)?;
    let needs = Needs::of(spec).map_err(|error| unreachable(&error))?;
    let plan = plan_cpus(backend, trial, spec)?;
    let limits = group::limits(&backend.layout, &spec.configuration, &plan);
    let in_all = place.in_all(&limits);
    refuse_outer_limits(backend, &in_all)?;
    refuse_full_memory(backend, &in_all)?;
    let name = GroupName::new(Path::new("/proc"), &spec.trial)
        .map_err(|error| cgroup_unable("naming the trial's cgroup", &error))?;
    let scratch = Scratch::make(&spec.scratch, &name).map_err(scratch_unable)?;
    let mut state = State::default();
    let named = scratch.named(spec.account).map_err(scratch_unable)?;
    let replaced = scratch.replaced().into_iter().chain(named).collect();
    let view = reach::view(spec, &needs, replaced, &mut state.warnings)
        .map_err(|error| unreachable(&error))?;
    if backend.options.evict_page_cache {
        backend.page_cache.evict(&needs);
    }
    let making = |error| cgroup_unable("making the trial's cgroup with its limits", &error);
    let group = TrialGroup::make(&backend.layout, &name.to_string(), &limits).map_err(making)?;
    let generator_group = generator_group(backend, spec, &plan, place)?;
    let neighbour = match place.index {
        0 => Neighbour::start(backend, spec, &plan.application)?,
        // One beside all of them.
        _ => None,
    };
    let (tell, notes) = channel();
    let log = scratch.create_output_log().map_err(scratch_unable)?;
    let (reader, writer) = std::io::pipe().map_err(tool_error("making a pipe"))?;
    let output = Output::read(reader, log, watch(spec, &tell), plan.generator.clone())
        .map_err(tool_error("starting the thread that reads the output"))?;
    let order = order(backend, spec, &needs, &plan, &group, view);
    let events = tell.clone();
    let sandbox = Sandbox::open(
        &backend.options.program,
        &order,
        &spec.trial,
        writer,
        // The receiver is gone when the trial is over; then nobody wants to know.
        move |event| drop(events.send(event.map_or(Note::Gone, Note::Event))),
    )
    .map_err(sandbox_unable)?;
    Ok(LocalInstance {
        spec: spec.clone(),
        place,
        options: backend.options.clone(),
        layout: backend.layout.clone(),
        plan,
        // A start script has no JDK of its own, but the caller may know better.
        is_jvm: needs.jdk.is_some() || spec.gc_log.is_some(),
        jdk: needs.jdk,
        recording: None,
        sandbox,
        output,
        group,
        generator_group,
        neighbour,
        scratch,
        notes,
        tell,
        state,
    })
}

/// A limit around the trial that is not above the trial's own would be measured in its place.
fn refuse_outer_limits(backend: &LocalBackend, limits: &Limits) -> Result<(), BackendError> {
    outer_limits(&backend.layout)
        .and_then(|outer| outer_conflict(&outer, limits))
        .map_err(|error| cgroup_unable("comparing with the limits around loadline", &error))
}

/// An application that takes its whole limit must not bring the machine to swap or kill.
fn refuse_full_memory(backend: &LocalBackend, limits: &Limits) -> Result<(), BackendError> {
    let Some(limit) = limits.memory else {
        return Ok(());
    };
    let memory = Memory::read(Path::new("/proc"))
        .map_err(|error| cgroup_unable("reading how much memory is free", &error))?;
    let reserve = backend.options.memory_reserve;
    if limit.saturating_add(reserve) <= memory.available {
        return Ok(());
    }
    let why = format!(
        "the configuration takes up to {limit} and {reserve} stay for the machine, but only {:.0}Mi of memory are available",
        memory.available.as_mib()
    );
    Err(unable(
        "the memory of this machine",
        why,
        "stop other programs, or try smaller sizes",
    ))
}

fn refuse_taken_ports(spec: &InstanceSpec) -> Result<(), BackendError> {
    match (spec.network, &spec.readiness) {
        (Network::Host, Readiness::Http { port, .. } | Readiness::Tcp { port }) => {
            port_is_free(*port)
        }
        _ => Ok(()),
    }
}

/// The CPUs of one instance, and those that no instance of the trial has, for the generators.
fn plan_cpus(
    backend: &LocalBackend,
    trial: &InstanceSpec,
    own: &InstanceSpec,
) -> Result<CpuPlan, BackendError> {
    let configuration = &trial.configuration;
    let plan = |wanted: Option<&[u32]>| {
        let (quota, instances) = (configuration.cpu, configuration.instances);
        CpuPlan::new(&backend.cpus, quota, wanted, instances)
    };
    let (Some(all), Some(own)) = (&configuration.cpuset, &own.configuration.cpuset) else {
        return Ok(plan(None));
    };
    let all = cpus_of(backend, &all.replace(';', ","))?;
    let own = cpus_of(backend, own)?;
    Ok(CpuPlan {
        application: own,
        ..plan(Some(&all))
    })
}

/// The CPUs of a list, sorted; all of them CPUs of this machine.
fn cpus_of(backend: &LocalBackend, text: &str) -> Result<Vec<u32>, BackendError> {
    let what = format!("the cpuset `{text}` of the configuration");
    let wanted: CpuSet = text
        .parse()
        .map_err(|error| unable(&what, error, "write CPUs as the kernel does: 0-1,3"))?;
    let wanted: Vec<u32> = wanted.iter().collect();
    let here = cpus::list(&backend.cpus);
    if wanted.is_empty() || wanted.iter().any(|cpu| !backend.cpus.contains(cpu)) {
        let why = format!("loadline may use CPUs {here} of this machine");
        return Err(unable(&what, why, "choose among these CPUs"));
    }
    Ok(wanted)
}

/// A group of its own for the generator, where it would otherwise compete with the application; of
/// several generators always, so that what they use is known not to be noise.
fn generator_group(
    backend: &LocalBackend,
    spec: &InstanceSpec,
    plan: &CpuPlan,
    place: Place,
) -> Result<Option<TrialGroup>, BackendError> {
    if !plan.is_shared() && place.of == 1 {
        return Ok(None);
    }
    let making = |error| cgroup_unable("making the load generator's cgroup", &error);
    let trial = format!("{}-generator", spec.trial);
    let name = GroupName::new(Path::new("/proc"), &trial).map_err(making)?;
    let limits = Limits {
        cpu_shares: Some(GENERATOR_SHARES),
        ..Limits::default()
    };
    let group = TrialGroup::make(&backend.layout, &name.to_string(), &limits);
    group.map(Some).map_err(making)
}

fn watch(spec: &InstanceSpec, tell: &Sender<Note>) -> Option<Watch> {
    let tell = tell.clone();
    match (&spec.readiness, &spec.log_line) {
        (Readiness::LogLine { contains }, _) => Some(Watch {
            text: contains.clone(),
            found: Box::new(move || drop(tell.send(line_found()))),
        }),
        (_, Some(text)) => Some(Watch {
            text: text.clone(),
            found: Box::new(move || {
                let at_ns = monotonic_ns();
                drop(tell.send(Note::LogLine { at_ns }));
            }),
        }),
        (_, None) => None,
    }
}

fn order(
    backend: &LocalBackend,
    spec: &InstanceSpec,
    needs: &Needs,
    plan: &CpuPlan,
    group: &TrialGroup,
    view: View,
) -> Order {
    let program = needs.program.display().to_string();
    let arguments = spec.command.iter().skip(1).cloned();
    Order {
        command: [program].into_iter().chain(arguments).collect(),
        env: spec.env.clone(),
        directory: spec.directory.clone(),
        uid: spec.account.uid,
        gid: spec.account.gid,
        join: group.group().join_files(),
        cpus: plan.application.clone(),
        open_files: backend.options.open_files,
        own_network: spec.network == Network::Own,
        keeps_groups: !rustix::process::geteuid().is_root(),
        view,
    }
}

fn unreachable(error: &Unreachable) -> BackendError {
    let hint = match error.access {
        "found" => "check the path; relative paths start in the working directory".to_owned(),
        _ => format!(
            "make it readable for everyone (chmod a+rX {}), or run the application as another user: --user",
            error.path.display()
        ),
    };
    unable("preparing the application", error, &hint)
}

fn scratch_unable(error: scratch::ScratchError) -> BackendError {
    let hint = "the state directory must be on a disk with space, writable for loadline";
    unable("making the trial's files", error, hint)
}

fn sandbox_unable(error: SandboxError) -> BackendError {
    let hint = "`loadline doctor` shows which namespaces this machine allows";
    unable("making the trial's namespaces", error, hint)
}
