//! Trials of the same configuration together, and how a configuration is called.
//!
//! Owns the grouping for every section: two configurations are the same when everything but their
//! label is.

use loadline_analysis::record::{Configuration, Provenance, TrialRecord, Verdict};

use crate::redact;
use crate::view::ResultView;

/// The trials of one configuration, in running order.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// What they ran.
    pub configuration: &'a Configuration,
    /// All of them, also those without evidence.
    pub trials: Vec<&'a TrialRecord>,
}

impl Group<'_> {
    /// Trials that may be believed.
    pub fn evidence(&self) -> impl Iterator<Item = &TrialRecord> {
        self.trials
            .iter()
            .copied()
            .filter(|t| t.verdict.is_evidence())
    }

    /// How many kept the SLO, of how many that may be believed.
    pub fn passes(&self) -> (usize, usize) {
        let passed = self
            .evidence()
            .filter(|t| t.verdict == Verdict::Pass)
            .count();
        (passed, self.evidence().count())
    }

    /// The first trial that broke the SLO or failed.
    pub fn first_failure(&self) -> Option<&TrialRecord> {
        self.evidence().find(|t| t.verdict != Verdict::Pass)
    }

    /// Whether every trial that may be believed kept the SLO, and there is one.
    pub fn keeps_slo(&self) -> bool {
        let (passed, of) = self.passes();
        of > 0 && passed == of
    }
}

/// The groups of a result, in the order in which they first ran.
pub fn groups(view: &ResultView) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for trial in &view.trials {
        let known = groups
            .iter_mut()
            .find(|g| is_same(g.configuration, &trial.configuration));
        match known {
            Some(group) => group.trials.push(trial),
            None => groups.push(Group {
                configuration: &trial.configuration,
                trials: vec![trial],
            }),
        }
    }
    groups
}

/// The group of one configuration.
pub fn group_of<'a>(view: &'a ResultView, configuration: &Configuration) -> Option<Group<'a>> {
    groups(view)
        .into_iter()
        .find(|g| is_same(g.configuration, configuration))
}

/// Whether two configurations differ in nothing but the label.
pub fn is_same(a: &Configuration, b: &Configuration) -> bool {
    a.memory == b.memory && a.cpu == b.cpu && {
        let mut b = b.clone();
        b.label.clone_from(&a.label);
        *a == b
    }
}

/// The size in words: `500m CPU, 212Mi`.
pub fn size(configuration: &Configuration) -> String {
    format!("{}, {}", cpu(configuration), memory(configuration))
}

/// The CPU limit in words.
pub fn cpu(configuration: &Configuration) -> String {
    match configuration.cpu {
        Some(cpu) if cpu.as_millis() > 1000 && cpu.as_millis() % 1000 == 0 => format!("{cpu} CPUs"),
        Some(cpu) => format!("{cpu} CPU"),
        None => "no CPU limit".to_owned(),
    }
}

/// The memory limit in words.
pub fn memory(configuration: &Configuration) -> String {
    configuration
        .memory
        .map_or_else(|| "no memory limit".to_owned(), |m| m.to_string())
}

/// Everything but the memory that tells configurations of an experiment apart: CPU, JDK, options
/// of the user, environment. Options that loadline calculated follow from the size.
pub fn variant(configuration: &Configuration) -> String {
    let mut parts = vec![cpu(configuration)];
    parts.extend(configuration.jdk.clone());
    if let Some(cpuset) = &configuration.cpuset {
        parts.push(format!("CPUs {cpuset}"));
    }
    if let Some(shares) = configuration.cpu_shares {
        parts.push(format!("{shares} shares"));
    }
    let user = configuration
        .jvm_options
        .iter()
        .filter(|o| o.provenance == Provenance::User);
    parts.extend(user.map(|o| redact::line(&o.text)));
    for (name, value) in &configuration.env {
        let value = if redact::is_secret_name(name) {
            redact::REDACTED
        } else {
            value
        };
        parts.push(format!("{name}={value}"));
    }
    parts.join(" ")
}

/// A configuration in one table cell: its size, and its variant where that says more.
pub fn name(configuration: &Configuration) -> String {
    let (cpu, variant) = (cpu(configuration), variant(configuration));
    let more = variant.strip_prefix(&cpu).unwrap_or(&variant).trim_start();
    if more.is_empty() {
        size(configuration)
    } else {
        format!("{} {more}", size(configuration))
    }
}
