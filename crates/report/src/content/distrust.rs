//! Reasons for distrust: trials without evidence, warnings, missing data.

use loadline_analysis::record::{InvalidReason, TrialRecord, TrialVerdict};
use loadline_analysis::sli::Sli;
use loadline_analysis::verdict::was_disturbed;

use super::groups;
use super::headline::incomplete_sentence;
use super::options::trial_numbers;
use super::section::Section;
use crate::view::ResultView;
use crate::{figures, format};

pub fn distrust_section(view: &ResultView) -> Option<Section> {
    if view.trials.is_empty() && view.warnings.is_empty() && view.incomplete.is_none() {
        return None;
    }
    let mut items: Vec<String> = Vec::new();
    items.extend(incomplete_sentence(view));
    items.extend(view.warnings.iter().cloned());
    items.extend(excluded_trials(view).map(|t| why_not(view, t)));
    items.extend(damaged_histograms(view));
    items.extend(warnings(view));
    let section = Section::new("distrust", "What was not trusted");
    let lead = left_out(view).unwrap_or_else(|| {
        let all = format::count_of(view.trials.len(), "trial");
        format!("All {all} were valid.")
    });
    Some(section.with_paragraph(lead).with_list(items))
}

pub(crate) fn left_out(view: &ResultView) -> Option<String> {
    let excluded = excluded_trials(view).count();
    let all = format::count_of(view.trials.len(), "trial");
    let left_out = (excluded > 0).then(|| {
        format!(
            "Left out of every figure above, because they say nothing about the application: {excluded} of {all}."
        )
    });
    let sentences: Vec<String> = left_out.into_iter().chain(disturbed(view)).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// How far noise may have changed the answer: a start that kept its SLO counts whatever else ran,
/// and a disturbed miss does not.
fn disturbed(view: &ResultView) -> Option<String> {
    let trials = || view.trials.iter().filter(|t| was_disturbed(&t.evidence));
    let kept = trials().filter(|t| t.verdict == TrialVerdict::Pass).count();
    let noise = TrialVerdict::Invalid(InvalidReason::Noise);
    let missed = trials().filter(|t| t.verdict == noise).count();
    match (kept, missed) {
        (0, _) => None,
        (kept, 0 | 1) => Some(format!(
            "Next to other programs {kept} of {} kept the SLO; alone they would have been faster.",
            format::count_of(view.trials.len(), "trial")
        )),
        (kept, missed) => Some(format!(
            "Next to other programs {} kept the SLO, which counts, and {missed} missed it, which does not. The answer may be too small: size again when the machine is quiet.",
            format::count_of(kept, "trial")
        )),
    }
}

fn excluded_trials(view: &ResultView) -> impl Iterator<Item = &TrialRecord> {
    let trials = view.trials.iter();
    trials.filter(|t| !t.verdict.is_evidence())
}

fn why_not(view: &ResultView, trial: &TrialRecord) -> String {
    let number = view.trial_number(&trial.id).unwrap_or(0);
    let reason = match trial.verdict {
        TrialVerdict::Invalid(cause) if trial.reason.is_empty() => {
            figures::invalid_reason(cause).to_owned()
        }
        _ => trial.reason.to_string(),
    };
    format!(
        "Trial {number} ({}): {}. {reason}",
        groups::ConfigurationNames::for_result(view).cell_name(&trial.configuration),
        figures::verdict_words(trial.verdict),
    )
}

fn damaged_histograms(view: &ResultView) -> Option<String> {
    let is_damaged = |t: &&TrialRecord| Sli::from_record(t).is_err();
    let damaged = view.trials.iter().filter(is_damaged);
    let ids: Vec<String> = damaged.map(|t| t.id.clone()).collect();
    (!ids.is_empty()).then(|| {
        format!(
            "The latency histogram cannot be read: {}.",
            trial_numbers(view, &ids)
        )
    })
}

fn warnings(view: &ResultView) -> Vec<String> {
    let mut seen: Vec<(&str, Vec<String>)> = Vec::new();
    for trial in &view.trials {
        for warning in &trial.evidence.warnings {
            match seen.iter_mut().find(|(text, _)| text == warning) {
                Some((_, ids)) => ids.push(trial.id.clone()),
                None => seen.push((warning, vec![trial.id.clone()])),
            }
        }
    }
    seen.iter()
        .map(|(text, ids)| format!("{text} ({})", trial_numbers(view, ids)))
        .collect()
}
