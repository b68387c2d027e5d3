//! One start: reads everything, decides, and makes the words to start java with.
//!
//! Fail-open: what cannot be read or understood becomes a note, and java starts with the user's
//! own options.

use std::ffi::OsString;
use std::path::PathBuf;

use loadline_sizing::decision::{self, ChosenOption, DecisionInput, LaunchDecision};
use loadline_sizing::limits::{self, ContainerLimits, Quota, SourcedValue};
use loadline_sizing::profile::AppProfile;
use loadline_sizing::regions::SizeProvenance;
use loadline_sizing::sight::{self, PerceivedMachine};
use loadline_sizing::{JvmOptionSet, Vm};

use crate::command::{self, CommandReading};
use crate::environment::{Environment, LauncherMode};
use crate::files::{self, FileSystem};
use crate::java::{self, Java};
use crate::secret::mask_text;
use crate::{cache, compatible, diagnostics, shared_classes, sys};

pub struct StartPlan {
    pub java: Java,
    pub limits: ContainerLimits,
    /// What the JVM believes; `None` when the JDK is not known.
    pub sight: Option<PerceivedMachine>,
    pub decision: Option<LaunchDecision>,
    pub added: Vec<ChosenOption>,
    pub options: JvmOptionSet,
    pub profile: Option<PathBuf>,
    pub cache: Option<String>,
    /// Ignored inputs with reasons: they do not make the decision worse.
    pub notes: Vec<String>,
    /// What could not be read or understood although decisions depend on it: settings, limits,
    /// options, the profile. `LOADLINE_STRICT` refuses on these.
    pub doubts: Vec<String>,
    /// Whether the options are added, not only said.
    pub is_applied: bool,
    pub words: Vec<OsString>,
}

/// Plans a start of `command`, with java as first word. `is_java` is the launcher under the name
/// `java`: `JAVA_OPTS` then belongs to the start script, which has used it already. Errors: A
/// sentence when there is no java to start.
pub fn plan_start(
    environment: &Environment,
    command: &[OsString],
    is_java: bool,
) -> Result<StartPlan, String> {
    let (word, words) = command.split_first().ok_or("no command")?;
    let java = java::find_java(word, environment)
        .ok_or("no java was found; set LOADLINE_JAVA or JAVA_HOME, or install one in PATH")?;
    let reader = command::OptionReader {
        is_9: java.jdk.is_none_or(|jdk| jdk.at_least(9)),
        uses_java_opts: !is_java,
    };
    let reading = command::read(words, environment, reader);
    let mut doubts = environment.odd_values();
    doubts.extend(reading.doubts.iter().cloned());
    let file_system = FileSystem::from_root();
    let limits = limits::discover(&file_system, sys::read_host());
    let limits = override_limits(limits, environment, &mut doubts);
    doubts.extend(limits.notes.iter().cloned());
    let mut plan = StartPlan {
        java,
        limits,
        sight: None,
        decision: None,
        added: Vec::new(),
        options: reading.merged_options(),
        profile: None,
        cache: None,
        notes: Vec::new(),
        doubts,
        is_applied: environment.launcher_mode() == LauncherMode::Apply,
        words: Vec::new(),
    };
    if environment.launcher_mode() != LauncherMode::Off {
        decide_options(&mut plan, environment, &file_system, &reading);
    }
    // java, the options added, `JAVA_OPTS`, and the user's words as they were.
    plan.words.push(word.clone());
    if plan.is_applied {
        let added = plan.added.iter();
        let added = added.map(|chosen| OsString::from(&chosen.option));
        plan.words.extend(added);
    }
    plan.words
        .extend(reading.own.into_iter().map(OsString::from));
    plan.words.extend(words.iter().cloned());
    Ok(plan)
}

fn decide_options(
    plan: &mut StartPlan,
    environment: &Environment,
    files: &FileSystem,
    reading: &CommandReading,
) {
    let Some(jdk) = plan.java.jdk else {
        let note =
            "the JDK has no readable release file; its version is not known, nothing is added";
        plan.doubts.push(note.to_owned());
        return;
    };
    let sight = sight::predict(jdk, files, &plan.limits, &plan.options);
    let (profile, path) = find_profile(environment, reading, plan);
    let input = DecisionInput {
        jdk,
        limits: &plan.limits,
        sight: &sight,
        options: &plan.options,
        profile: profile.as_ref(),
    };
    let mut decision = decision::decide_launch(&input);
    if environment.is_off("LOADLINE_EXIT_ON_OOM") {
        let is_kept = |chosen: &ChosenOption| chosen.option != "-XX:+ExitOnOutOfMemoryError";
        decision.options.retain(is_kept);
    }
    let mut refused = None;
    if let Some(name) = environment.text_value("LOADLINE_COMPAT") {
        let as_chosen = |option| ChosenOption {
            option,
            provenance: SizeProvenance::Calculated,
            reason: format!("as {name} computes it"),
        };
        let profile = profile.as_ref();
        let theirs = compatible::compatible_options(&name, environment, plan, jdk, profile);
        let theirs = theirs.map(|options| options.into_iter().map(as_chosen).collect());
        let theirs = theirs.unwrap_or_else(|reason| {
            refused = Some(format!("LOADLINE_COMPAT: {reason}; nothing is added"));
            Vec::new()
        });
        // The explanation, and the cache check, apply to the started command.
        decision.replace_options(&input, theirs);
    }
    plan.doubts.extend(refused);
    let reasons = decision.options.iter_mut().map(|chosen| &mut chosen.reason);
    // They quote the user's options.
    for said in decision.warnings.iter_mut().chain(reasons) {
        *said = mask_text(said);
    }
    plan.added = decision.options.clone();
    let (java, target, ergonomics) = (&plan.java, &reading.target, decision.ergonomics.as_ref());
    let (options, notes) = (&plan.options, &mut plan.notes);
    let found = match jdk.vm {
        _ if environment.is_off("LOADLINE_CACHE") => None,
        Vm::OpenJ9 => shared_classes::find_shared_cache(java, target, options, notes),
        Vm::HotSpot => cache::find_cache(java, target, options, ergonomics, notes),
    };
    if let Some(cache) = found {
        let chosen = cache.options.into_iter().map(|option| ChosenOption {
            option,
            provenance: SizeProvenance::Calculated,
            reason: cache.reason.clone(),
        });
        plan.added.extend(chosen);
        plan.cache = Some(cache.reason);
    }
    let heap = decision.heap;
    let presets =
        diagnostics::preset_options(environment, Some(jdk), &plan.options, heap, &mut plan.notes);
    plan.added.extend(presets);
    plan.profile = path;
    plan.sight = Some(sight);
    plan.decision = Some(decision);
}

fn find_profile(
    environment: &Environment,
    reading: &CommandReading,
    plan: &mut StartPlan,
) -> (Option<AppProfile>, Option<PathBuf>) {
    let set = environment.raw_value("LOADLINE_PROFILE").map(PathBuf::from);
    let homes = reading.application_homes().into_iter();
    let beside = homes.map(|home| home.join("loadline.profile"));
    let candidates = match &set {
        Some(set) => vec![set.clone()],
        None => beside.chain(["/etc/loadline/profile".into()]).collect(),
    };
    for path in candidates {
        match files::read_text(&path) {
            Ok(text) => {
                let profile = AppProfile::parse_profile(&text);
                // A newer profile may say more than this launcher knows.
                plan.notes.extend(profile.notes.iter().cloned());
                return (Some(profile), Some(path));
            }
            Err(limits::UnreadableFile::Missing) if set.is_none() => {}
            Err(_) => plan
                .doubts
                .push(format!("the profile {} could not be read", path.display())),
        }
    }
    (None, None)
}

/// `LOADLINE_MEMORY` and `LOADLINE_CPUS` replace the discovered values.
fn override_limits(
    mut limits: ContainerLimits,
    environment: &Environment,
    doubts: &mut Vec<String>,
) -> ContainerLimits {
    match environment.memory_override() {
        Ok(Some(memory)) => {
            limits.memory = Some(SourcedValue::new(memory, "LOADLINE_MEMORY"));
            limits.memory_high = None;
        }
        Ok(None) => {}
        Err(error) => doubts.push(error),
    }
    match environment.cpu_override() {
        Ok(Some(cpus)) if cpus.as_millis() > 0 => {
            let quota = Quota {
                quota_us: u64::from(cpus.as_millis()) * 100,
                period_us: 100_000,
            };
            limits.quota = Some(SourcedValue::new(quota, "LOADLINE_CPUS"));
            // It may be more than this machine has: planning for another one.
            limits.host.affinity = limits.host.affinity.max(cpus.ceil());
            limits.cpuset = None;
        }
        Ok(_) => {}
        Err(error) => doubts.push(error),
    }
    limits
}

impl StartPlan {
    /// The environment to start java with: `MALLOC_ARENA_MAX=2` where memory is limited, because
    /// glibc's arenas (8 a CPU) otherwise grow unseen (Cloud Foundry #157).
    pub fn start_environment(&self, environment: &Environment) -> Vec<(OsString, OsString)> {
        let mut all = environment.variables.clone();
        let name = "MALLOC_ARENA_MAX";
        let applies = self.is_applied && self.limits.is_memory_limited();
        if applies && environment.raw_value(name).is_none() {
            all.push((name.into(), "2".into()));
        }
        all
    }

    pub fn strict_refusal(&self) -> Option<String> {
        let decision = self.decision.as_ref();
        if let Some(minimum) = decision.and_then(|decision| decision.minimum) {
            let limit = decision.map(|decision| decision.memory.to_string());
            let limit = limit.unwrap_or_default();
            return Some(format!(
                "the limit of {limit} is too small; at least {minimum} is needed"
            ));
        }
        self.doubts.first().cloned()
    }
}
