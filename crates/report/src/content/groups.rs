//! Trials of the same configuration together, and how a configuration is called.
//!
//! Owns the grouping for every section: two configurations are the same when everything but their
//! label is.

use loadline_analysis::budget::without_pretouch;
use loadline_analysis::record::{
    CPU_PERIOD, Configuration, JvmOption, LevelApplication, TrialRecord, TrialVerdict,
    ValueProvenance,
};
use loadline_analysis::slo::Quantile;
use loadline_analysis::text::join_words;
use loadline_sizing::Cpus;

use super::growth::is_tracking;
use crate::figures::{TrialFigures, unique};
use crate::view::ResultView;
use crate::{format, redact};

#[derive(Debug, Clone)]
pub struct ConfigurationGroup<'a> {
    pub configuration: &'a Configuration,
    pub trials: Vec<&'a TrialRecord>,
}

impl ConfigurationGroup<'_> {
    pub fn evidence_trials(&self) -> impl Iterator<Item = &TrialRecord> {
        let trials = self.trials.iter().copied();
        trials.filter(|t| t.verdict.is_evidence())
    }

    pub fn has_evidence(&self) -> bool {
        self.evidence_trials().next().is_some()
    }

    /// The figures of its valid trials; `headline` is the quantile that people look at first.
    pub fn figures(&self, headline: Quantile) -> Vec<TrialFigures> {
        let figures = |t| TrialFigures::for_trial(t, headline);
        self.evidence_trials().map(figures).collect()
    }

    /// Trials that kept the SLO, and valid trials.
    pub fn passes(&self) -> (usize, usize) {
        let passed = self.evidence_trials();
        let passed = passed.filter(|t| t.verdict == TrialVerdict::Pass);
        (passed.count(), self.evidence_trials().count())
    }

    pub fn first_failure(&self) -> Option<&TrialRecord> {
        self.evidence_trials()
            .find(|t| t.verdict != TrialVerdict::Pass)
    }

    pub fn keeps_slo(&self) -> bool {
        let (passed, of) = self.passes();
        of > 0 && passed == of
    }
}

pub fn group_trials(view: &ResultView) -> Vec<ConfigurationGroup<'_>> {
    let mut groups: Vec<ConfigurationGroup<'_>> = Vec::new();
    for trial in &view.trials {
        let known = groups
            .iter_mut()
            .find(|g| is_same(g.configuration, &trial.configuration));
        match known {
            Some(group) => group.trials.push(trial),
            None => groups.push(ConfigurationGroup {
                configuration: &trial.configuration,
                trials: vec![trial],
            }),
        }
    }
    groups
}

pub fn group_of<'a>(
    view: &'a ResultView,
    configuration: &Configuration,
) -> Option<ConfigurationGroup<'a>> {
    let mut groups = group_trials(view).into_iter();
    groups.find(|g| is_same(g.configuration, configuration))
}

pub fn is_same(a: &Configuration, b: &Configuration) -> bool {
    a.memory == b.memory && a.cpu == b.cpu && {
        let mut b = b.clone();
        b.label.clone_from(&a.label);
        *a == b
    }
}

/// Whether a trial ran with an answer's configuration. With `--heap grow` trials touch a heap that the
/// answer leaves to grow; old soaks had native memory tracking too.
pub fn is_of_answer(trial: &Configuration, answer: &Configuration) -> bool {
    let shipped = |own: &Configuration| {
        let mut own = without_pretouch(own.clone());
        own.jvm_options.retain(|option| !is_tracking(option));
        own
    };
    is_same(&shipped(trial), &shipped(answer))
}

/// Whether the answer is this trial's configuration.
pub fn is_chosen(view: &ResultView, configuration: &Configuration) -> bool {
    let chosen = view.recommendation.as_ref();
    chosen.is_some_and(|answer| is_of_answer(configuration, &answer.configuration))
}

/// The size in words: `500m CPU and 212Mi with -Xmx64m`.
pub fn size_words(configuration: &Configuration) -> String {
    let heap = configuration.heap_option();
    let heap = heap.map_or_else(String::new, |heap| format!(" with {heap}"));
    format!("{}{heap}", limits_of(configuration))
}

/// The limits in words: `500m CPU and 212Mi`.
pub fn limits_of(configuration: &Configuration) -> String {
    let each = match configuration.instances {
        1 => String::new(),
        n => format!(" for each of {n} instances"),
    };
    format!(
        "{} and {}{each}",
        cpu_words(configuration),
        memory_words(configuration)
    )
}

pub fn cpu_words(configuration: &Configuration) -> String {
    let amount = |cpu: Cpus| match cpu.as_millis() {
        millis if millis > 1000 && millis % 1000 == 0 => format!("{cpu} CPUs"),
        _ => format!("{cpu} CPU"),
    };
    match (configuration.cpu, configuration.cpu_request) {
        (Some(cpu), request) => {
            let request = request.map_or_else(String::new, |request| {
                format!("a CPU request of {request} with a limit of ")
            });
            let until = configuration
                .start_cpu
                .map_or_else(String::new, |start| format!(" ({start} until ready)"));
            format!("{request}{}{until}", amount(cpu))
        }
        (None, Some(request)) => format!("a CPU request of {request} without a limit"),
        (None, None) => "no CPU limit".to_owned(),
    }
}

pub fn memory_words(configuration: &Configuration) -> String {
    let memory = configuration.memory;
    memory.map_or_else(|| "no memory limit".to_owned(), |m| m.to_string())
}

/// The same with the heap that loadline chose: `212Mi -Xmx64m`. A heap set by the user is among the
/// options.
pub(crate) fn memory_and_heap(configuration: &Configuration) -> String {
    let mut options = configuration.jvm_options.iter();
    let is_user = |o: &&JvmOption| o.provenance == ValueProvenance::User;
    let own = configuration.heap_option();
    let own = own.filter(|heap| !options.any(|o| is_user(&o) && o.text == *heap));
    let heap = own.map_or_else(String::new, |heap| format!(" {heap}"));
    format!("{}{heap}", memory_words(configuration))
}

/// Names for the configurations of one result: only the parts in which they differ.
#[derive(Debug, Clone)]
pub struct ConfigurationNames {
    pub(super) shared: Vec<String>,
    differ: bool,
    others: bool,
    labels: OptionLabels,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Default)]
enum LabelScope {
    #[default]
    Options,
    /// JDKs too: `17-none` and `25-none` have the same options.
    Jdk,
    /// Sizes too: levels with the same options at different limits.
    Size,
}

/// The experiment's label of each set of options, where the labels tell the sets apart.
#[derive(Debug, Clone, Default)]
struct OptionLabels {
    by: LabelScope,
    all: Vec<(Vec<String>, String)>,
}

impl OptionLabels {
    /// Options alone if they suffice, else with the JDK, else with the size too.
    fn narrowest_for(view: &ResultView) -> Self {
        let tried = [LabelScope::Options, LabelScope::Jdk, LabelScope::Size]
            .map(|by| Self::told_by(view, by));
        let found = tried.into_iter().find(|labels| !labels.all.is_empty());
        found.unwrap_or_default()
    }

    fn told_by(view: &ResultView, by: LabelScope) -> Self {
        let mut all = unique(view.trials.iter().map(|trial| {
            let of = label_meaning(&trial.configuration, by);
            (of, own_label(&trial.configuration))
        }));
        let is_unique = |(of, label): &(Vec<String>, String)| {
            let same = all.iter().filter(|(o, l)| o == of || l == label).count();
            same == 1 && !label.is_empty()
        };
        if all.len() < 2 || !all.iter().all(is_unique) {
            all.clear();
        }
        Self { by, all }
    }

    fn find_label(&self, configuration: &Configuration) -> Option<&str> {
        let of = label_meaning(configuration, self.by);
        let found = self.all.iter().find(|(known, _)| *known == of);
        found.map(|(_, label)| label.as_str())
    }
}

fn label_meaning(configuration: &Configuration, by: LabelScope) -> Vec<String> {
    let jdk = configuration.jdk.iter();
    let jdk = jdk.filter(|_| by >= LabelScope::Jdk).cloned();
    let size = (by == LabelScope::Size).then(|| size_words(configuration));
    let before = size.into_iter().chain(jdk);
    before.chain(option_words(configuration)).collect()
}

impl ConfigurationNames {
    pub fn for_result(view: &ResultView) -> Self {
        let configurations = view.trials.iter().map(|t| &t.configuration);
        let mut all = configurations.clone().map(parts_besides_memory);
        let first = all.next().unwrap_or_default();
        let mut shared = first.clone();
        let mut differ = false;
        for parts in all {
            differ |= parts != first;
            shared.retain(|part| parts.contains(part));
        }
        let labels = OptionLabels::narrowest_for(view);
        Self {
            shared,
            differ: differ || !labels.all.is_empty(),
            others: configurations.clone().any(|c| c.application.is_some()),
            labels,
        }
    }

    pub fn differ_beyond_memory(&self) -> bool {
        self.differ
    }

    /// The experiment's label of its options; `None` where they all have the same.
    pub fn label(&self, configuration: &Configuration) -> Option<&str> {
        self.labels.find_label(configuration)
    }

    /// All differences from the other configurations except memory: limits, then the experiment's
    /// label or the options. `defaults` if there are none.
    pub fn variant(&self, configuration: &Configuration) -> String {
        let mut own = limits_besides_memory(configuration);
        own.retain(|part| !self.shared.contains(part));
        match self.labels.find_label(configuration) {
            Some(label) => {
                let has_jdk = self.labels.by >= LabelScope::Jdk;
                let said = configuration.jdk.as_ref().filter(|_| has_jdk);
                own.retain(|part| Some(part) != said);
                own.push(label.to_owned());
            }
            None => {
                own.extend(option_words(configuration));
                own.retain(|part| !self.shared.contains(part));
            }
        }
        if own.is_empty() {
            "defaults".to_owned()
        } else {
            own.join(" ")
        }
    }

    /// The same without the size and the rate; may be empty.
    pub fn besides_size(&self, configuration: &Configuration) -> String {
        let plain = Configuration {
            rate: None,
            ..configuration.clone()
        };
        let mut own = other_limits(&plain);
        own.extend(option_words(&plain));
        own.retain(|part| !self.shared.contains(part));
        own.join(" ")
    }

    pub fn meanings(&self) -> Vec<String> {
        let meaning = |(options, label): &(Vec<String>, String)| {
            let options = match options.is_empty() {
                true if self.others => "the experiment's own application".to_owned(),
                true => "nothing added".to_owned(),
                false => options.join(" "),
            };
            format!("{label}: {options}")
        };
        self.labels.all.iter().map(meaning).collect()
    }

    pub fn cell_name(&self, configuration: &Configuration) -> String {
        let memory = memory_and_heap(configuration);
        if self.differ {
            format!("{memory}, {}", self.variant(configuration))
        } else {
            memory
        }
    }
}

/// The label without the words that repeat a limit: `600Mi c1` is `c1`.
fn own_label(configuration: &Configuration) -> String {
    let repeats = |word: &&str| {
        word.parse().ok() == configuration.memory && configuration.memory.is_some()
            || [configuration.cpu, configuration.cpu_request]
                .into_iter()
                .flatten()
                .any(|cpu| word.strip_suffix("cpu").unwrap_or(word).parse().ok() == Some(cpu))
            || configuration.jdk.as_deref().is_some_and(|jdk| {
                // A plain level of the factor `jdk` is called `jdk17`.
                *word == jdk || word.strip_prefix("jdk") == Some(jdk)
            })
            || word.parse().ok() == configuration.cpuset && configuration.cpuset.is_some()
            || configuration
                .cpu_shares
                .is_some_and(|shares| shares.to_string() == **word)
    };
    let words = configuration.label.split_whitespace();
    join_words(words.filter(|word| !repeats(word)), " ")
}

fn parts_besides_memory(configuration: &Configuration) -> Vec<String> {
    let mut parts = limits_besides_memory(configuration);
    parts.extend(option_words(configuration));
    parts
}

fn limits_besides_memory(configuration: &Configuration) -> Vec<String> {
    let mut parts = vec![cpu_words(configuration)];
    parts.extend(other_limits(configuration));
    parts
}

fn other_limits(of: &Configuration) -> Vec<String> {
    let mut parts: Vec<String> = of.jdk.iter().cloned().collect();
    if of.instances > 1 {
        parts.push(format!("each of {} instances", of.instances));
    }
    parts.extend(of.cpuset.as_ref().map(|set| format!("CPUs {set}")));
    parts.extend(of.cpu_shares.map(|shares| format!("{shares} shares")));
    parts.extend(of.shm.map(|shm| format!("/dev/shm {shm}")));
    parts.extend(of.rate.map(format::as_rate));
    let warm_up = of.warm_up.map(format::elapsed);
    parts.extend(warm_up.map(|time| format!("warm-up {time}")));
    // How the quota is dealt out, where it is not the kernel's default.
    let millis = |d: std::time::Duration| d.as_secs_f64() * 1e3;
    if of.cpu_period != CPU_PERIOD {
        parts.push(format!("period {} ms", millis(of.cpu_period)));
    }
    let burst = of.cpu_burst.map(millis);
    parts.extend(burst.map(|burst| format!("burst {burst} ms")));
    let neighbour = of.neighbour_threads;
    parts.extend(neighbour.map(|n| format!("a neighbour with {n} busy threads")));
    parts
}

/// The application if it differs from the experiment's, options of the user, arguments,
/// environment. Options that loadline calculated follow from the size.
pub(crate) fn option_words(configuration: &Configuration) -> Vec<String> {
    let is_user = |o: &&JvmOption| o.provenance == ValueProvenance::User;
    let jvm = configuration.jvm_options.iter().filter(is_user);
    let application = configuration.application.iter();
    let mut parts: Vec<String> = application.map(application_words).collect();
    parts.extend(jvm.map(|o| redact::redact_line(&o.text)));
    if let Some(cache) = configuration.cache {
        parts.push(format!("{} cache, {} requests", cache.kind, cache.requests));
    }
    parts.extend(redact::redact_command(&configuration.args));
    for (name, value) in &configuration.env {
        parts.push(redact::redact_variable(name, value));
    }
    parts
}

fn application_words(of: &LevelApplication) -> String {
    let image = of.image.iter().map(|image| format!("image {image}"));
    let engine = of.engine.iter().map(|engine| format!("by {engine}"));
    let command = redact::redact_command(&of.command);
    join_words(image.chain(engine).chain(command), " ")
}
