//! Two results side by side: changes from the first to the second, with intervals.
//!
//! Owns which trials are compared: the two recommended sizes, and each configuration that both
//! results ran. A change counts only if its interval excludes "no change". Never judges a trial
//! again; verdicts come from the records.

mod figure;
mod size;
mod write;

use loadline_analysis::proof::is_proof;
use loadline_analysis::recommend::Recommendation;
use loadline_analysis::record::Configuration;

use crate::content::groups::{self, ConfigurationGroup, ConfigurationNames};
use crate::content::slo_words;
use crate::view::ResultView;
use crate::{format, text};

pub use figure::{ComparedFigure, FigureChange};
pub use size::RecommendedSize;
pub use write::{
    ExportedComparison, comparison_html, comparison_json, comparison_markdown, comparison_terminal,
};

#[derive(Debug, Clone, PartialEq)]
pub struct ResultComparison {
    pub names: [String; 2],
    pub sentence: String,
    /// Whether the second is worse: it breaks the SLO where the first kept it, needs or costs more.
    pub is_worse: bool,
    /// Why no comparison is possible: one result measured nothing; `None` if it is possible.
    pub cannot_say: Option<String>,
    pub differences: Vec<String>,
    pub sizes: [Option<RecommendedSize>; 2],
    pub recommended: Vec<ComparedFigure>,
    pub shared: Vec<SharedConfiguration>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SharedConfiguration {
    pub name: String,
    pub passes: [(usize, usize); 2],
    /// The first kept the SLO here, the second did not, and that counts: between two searches only
    /// at what the second recommends and above, as each search probes its own border.
    pub is_lost: bool,
    pub figures: Vec<ComparedFigure>,
}

pub fn compare(a: &ResultView, b: &ResultView) -> ResultComparison {
    let views = [a, b];
    let recommendations = views.map(|v| v.recommendation.as_ref());
    let shared = shared_configurations(a, b);
    let recommended = match recommendations {
        [Some(one), Some(two)] => figure::compare_figures(
            a,
            groups::group_of(a, &one.configuration).as_ref(),
            groups::group_of(b, &two.configuration).as_ref(),
        ),
        _ => Vec::new(),
    };
    let cannot_say = cannot_say(views);
    let lost: Vec<&SharedConfiguration> = shared.iter().filter(|s| s.is_lost).collect();
    let (sentence, is_larger) = match &cannot_say {
        Some(why) => (Some(format!("Not comparable: {why}.")), false),
        None => size_sentence(recommendations),
    };
    let sentence = match (sentence, lost.as_slice()) {
        (Some(sentence), []) => sentence,
        (None, []) => matrix_sentence(&shared),
        (sentence, lost) => {
            let names: Vec<&str> = lost.iter().map(|s| s.name.as_str()).collect();
            let lost = format!("The SLO is no longer kept at {}.", names.join(", "));
            format!("{} {lost}", sentence.unwrap_or_default())
                .trim()
                .to_owned()
        }
    };
    ResultComparison {
        names: views.map(|v| text::one_line(&format!("{} {}", v.title, format::short_id(&v.id)))),
        sentence,
        is_worse: is_larger || !lost.is_empty(),
        cannot_say,
        differences: differences(a, b),
        sizes: recommendations.map(|r| r.map(RecommendedSize::from_recommendation)),
        recommended,
        shared,
    }
}

fn cannot_say(views: [&ResultView; 2]) -> Option<String> {
    let [first, second] = views;
    for (which, view) in [("first", first), ("second", second)] {
        if view.recommendation.is_none() && view.evidence_trials().next().is_none() {
            return Some(if view.trials.is_empty() {
                format!("the {which} has no trial")
            } else {
                format!("no trial of the {which} was valid")
            });
        }
    }
    let mut asked = Vec::new();
    let mut ask = |what: &'static str, is_same: bool| asked.extend((!is_same).then_some(what));
    ask("SLO", slo_words(first) == slo_words(second));
    ask("load", first.load.to_string() == second.load.to_string());
    let cpus = |v: &ResultView| (v.machine.cpus, v.machine.cpu_model.clone());
    ask("machine", cpus(first) == cpus(second));
    if !asked.is_empty() {
        return Some(format!("they have another {}", asked.join(", another ")));
    }
    let is_cut_short = second.recommendation.is_none() && second.incomplete.is_some();
    (first.recommendation.is_some() && is_cut_short)
        .then(|| "the second ended before it had an answer".to_owned())
}

fn size_sentence(recommendations: [Option<&Recommendation>; 2]) -> (Option<String>, bool) {
    match recommendations {
        [Some(before), Some(after)] => {
            let change = size::size_change(before, after);
            (Some(change.sentence), change.is_worse)
        }
        [Some(before), None] => {
            let before = RecommendedSize::from_recommendation(before).name;
            let sentence = format!("The first needs {before}; the second has no answer.");
            (Some(sentence), true)
        }
        [None, Some(after)] => {
            let after = RecommendedSize::from_recommendation(after).name;
            let sentence = format!("The second needs {after}; the first has no answer.");
            (Some(sentence), false)
        }
        [None, None] => (None, false),
    }
}

fn matrix_sentence(shared: &[SharedConfiguration]) -> String {
    match shared.len() {
        0 => "The two results have no configuration in common.".to_owned(),
        n => format!(
            "{} in both results; no trial lost the SLO.",
            format::count_of(n, "configuration")
        ),
    }
}

fn shared_configurations(a: &ResultView, b: &ResultView) -> Vec<SharedConfiguration> {
    let others = groups::group_trials(b);
    let names = ConfigurationNames::for_result(a);
    let counts = |configuration: &Configuration| match (&a.recommendation, &b.recommendation) {
        (Some(_), Some(least)) => size::is_at_least(configuration, least),
        _ => true,
    };
    let pair = |one: ConfigurationGroup<'_>| {
        let two = others
            .iter()
            .find(|g| groups::is_same(g.configuration, one.configuration))?;
        let passes = [one.passes(), two.passes()];
        let [before, after] = passes.map(|(kept, of)| is_proof(kept as u64, of as u64));
        Some(SharedConfiguration {
            name: text::label(&names.cell_name(one.configuration)),
            passes,
            is_lost: before && !after && passes[1].1 > 0 && counts(one.configuration),
            figures: figure::compare_figures(a, Some(&one), Some(two)),
        })
    };
    let ours = groups::group_trials(a).into_iter();
    ours.filter_map(pair).collect()
}

fn differences(a: &ResultView, b: &ResultView) -> Vec<String> {
    let mut found = Vec::new();
    let mut differ = |what: &str, one: String, two: String| {
        if one != two {
            let line = format!("The {what} differs: {one}; {two}.");
            found.push(text::one_line(&line));
        }
    };
    differ("SLO", slo_words(a), slo_words(b));
    differ("load", a.load.to_string(), b.load.to_string());
    let machine = |v: &ResultView| {
        let m = &v.machine;
        format!("{} CPUs of {}, {}", m.cpus, m.cpu_model, m.kernel)
    };
    differ("machine", machine(a), machine(b));
    let pods = |v: &ResultView| match &v.machine.cluster {
        None => match v.machine.apart {
            None => "no pods".to_owned(),
            Some(_) => "containers next to the application's".to_owned(),
        },
        Some(cluster) => {
            let class = cluster.runtime_class.as_ref();
            let class = class.map_or_else(String::new, |name| format!(", runtime class {name}"));
            let os = cluster.os.as_ref();
            let os = os.map_or_else(String::new, |os| format!(" on {os}"));
            let generators = cluster.generators.map_or_else(String::new, |number| {
                let pods = format::count_of(number.get() as usize, "generator pod");
                format!(", load from {pods}")
            });
            format!("pods by {}{class}{os}{generators}", cluster.runtime)
        }
    };
    differ("place of the trials", pods(a), pods(b));
    let deployments = [a, b].map(|v| v.recommendation.as_ref()?.deployment.as_ref());
    if let [Some(one), Some(two)] = deployments {
        differ("offer", size::offer(one), size::offer(two));
    }
    differ("JDK", a.machine.jdks.join(", "), b.machine.jdks.join(", "));
    let version = |v: &ResultView| {
        let known = v.machine.version_in_words();
        known.unwrap_or_else(|| "not known".to_owned())
    };
    differ("version", version(a), version(b));
    differ(
        "version of loadline",
        a.machine.loadline.clone(),
        b.machine.loadline.clone(),
    );
    for (which, view) in [("first", a), ("second", b)] {
        if let Some(why) = &view.incomplete {
            found.push(text::one_line(&format!(
                "The {which} is not complete: {why}."
            )));
        }
        let left_out = view.trials.len() - view.evidence_trials().count();
        if left_out > 0 {
            found.push(format!(
                "{left_out} of {} of the {which} were not valid and are left out.",
                format::count_of(view.trials.len(), "trial")
            ));
        }
    }
    found
}
