//! Whether the load command's own results agree with what loadline saw: one sentence.

use loadline_analysis::record::{LoadEvidence, LoadFrom, TrialPhase, TrialRecord};
use loadline_analysis::reported::{ReportDifference, find_differences};

use crate::content::options::trial_numbers;
use crate::view::ResultView;
use crate::{format, text};

/// Differences of one trial that are said.
const MOST: usize = 3;

pub(super) fn reported_sentence(view: &ResultView) -> Option<String> {
    let loads: Vec<_> = view.evidence_trials().filter_map(reported_load).collect();
    let format = text::label(&loads.first()?.2);
    let own = format!("The load command's own results ({format})");
    let compared: Vec<_> = loads
        .iter()
        .filter_map(|(trial, load, _)| Some((*trial, find_differences(load)?)))
        .collect();
    let differing: Vec<_> = compared.iter().filter(|(_, all)| !all.is_empty()).collect();
    let trials = format::count_of(compared.len(), "trial");
    Some(match differing.first() {
        _ if compared.is_empty() => {
            format!("{own} cover its whole run, so they are not compared with the judged part.")
        }
        None => format!(
            "{own} agree with what loadline saw in {trials}: requests within 1 %, p99 within 10 %."
        ),
        Some((trial, found)) => {
            let first: Vec<_> = found.iter().take(MOST).map(difference_words).collect();
            let number = trial_numbers(view, std::slice::from_ref(&trial.id));
            let place = match compared.len() {
                1 => String::new(),
                _ => format!(" in {} of {trials}, as in {number}", differing.len()),
            };
            format!(
                "{own} differ from what loadline saw{place}: {}. What loadline saw was judged.",
                first.join("; ")
            )
        }
    })
}

fn reported_load(trial: &TrialRecord) -> Option<(&TrialRecord, &LoadEvidence, String)> {
    let mut loads = trial.evidence.load.iter();
    let load = loads.find(|load| load.phase == TrialPhase::Measure)?;
    let Some(LoadFrom::Command { command }) = &load.load_from else {
        return None;
    };
    Some((trial, load, command.reported.as_ref()?.format.clone()))
}

fn difference_words(difference: &ReportDifference) -> String {
    let named = difference.request.as_ref();
    let named = named.map_or_else(String::new, |name| format!("{}: ", text::label(name)));
    let counts = difference
        .requests
        .map(|of| format!("{} requests where {} were seen", of.reported, of.observed));
    let tail = |p99| match p99 {
        Some(p99) => format::measured_time(p99),
        None => "in failed requests".to_owned(),
    };
    let tails = difference.p99.map(|of| {
        format!(
            "p99 {} where {} was seen",
            tail(of.reported),
            tail(of.observed)
        )
    });
    let both: Vec<_> = counts.into_iter().chain(tails).collect();
    format!("{named}{}", both.join(", "))
}
