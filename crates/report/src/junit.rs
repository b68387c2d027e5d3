//! JUnit XML for CI: one test case per configuration, a failure for a missed SLO. Sizes that a
//! search tried and found too small are skipped: they fail nothing.
//!
//! The form suits Jenkins and GitLab (testsuite, testcase, failure, error, skipped).
//! Characters that XML 1.0 does not have are left out.

use loadline_analysis::text::join_words;

use crate::content::claim::AnswerClaim;
use crate::content::groups::{self, ConfigurationGroup, ConfigurationNames};
use crate::view::ResultView;
use crate::{content, figures, text};

/// The result as one test suite. A configuration without evidence is an error, and so is a result
/// that is not complete or has no trial: CI must not take either for a pass.
pub fn render_junit(view: &ResultView) -> String {
    let groups = groups::group_trials(view);
    let failed = groups.iter().filter(|g| g.first_failure().is_some());
    let (steps, failed): (Vec<_>, Vec<_>) = failed.partition(|g| is_step(view, g));
    let (skipped, failures) = (steps.len(), failed.len());
    let errors = groups.iter().filter(|g| !g.has_evidence()).count();
    let nothing = view.trials.is_empty().then_some("no trial has finished");
    let missing = view.incomplete.as_deref().or(nothing);
    let (tests, errors) = match missing {
        Some(_) => (groups.len() + 1, errors + 1),
        None => (groups.len(), errors),
    };
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"{:.3}\">\n",
        attribute(&view.title),
        tests,
        view.elapsed().as_secs_f64(),
    );
    let names = ConfigurationNames::for_result(view);
    for group in &groups {
        write_case(&mut out, view, group, &names);
    }
    if let Some(why) = missing {
        out.push_str(&format!(
            "  <testcase classname=\"{}\" name=\"the result is complete\">\n    <error type=\"INCOMPLETE\" message=\"{}\"/>\n  </testcase>\n",
            attribute(&view.title),
            attribute(why),
        ));
    }
    out.push_str("</testsuite>\n");
    out
}

/// Whether a search with an answer tried this on its way to it. The answer itself, of each level too,
/// is none.
fn is_step(view: &ResultView, group: &ConfigurationGroup<'_>) -> bool {
    let Some(answer) = &view.recommendation else {
        return false;
    };
    let by_level = answer.by_level.iter();
    let by_level = by_level.filter_map(|of| of.configuration.as_ref());
    let mut answers = by_level.chain([&answer.configuration]);
    !answers.any(|answer| groups::is_of_answer(group.configuration, answer))
}

fn write_case(
    out: &mut String,
    view: &ResultView,
    group: &ConfigurationGroup<'_>,
    names: &ConfigurationNames,
) {
    out.push_str(&format!(
        "  <testcase classname=\"{}\" name=\"{} keeps {}\"",
        attribute(&view.title),
        attribute(&names.cell_name(group.configuration)),
        attribute(&view.slo.to_string()),
    ));
    let shown = match (group.first_failure(), group.evidence_trials().next()) {
        (Some(failure), _) if is_step(view, group) => {
            let why = attribute(&failure.reason.to_string());
            out.push_str(&format!(
                ">\n    <skipped message=\"too small, tried on the way to the answer: {why}\"/>\n  </testcase>\n"
            ));
            return;
        }
        (Some(failure), _) => Some(("failure", failure)),
        (None, None) => group.trials.first().map(|t| ("error", *t)),
        (None, Some(_)) => None,
    };
    match shown {
        Some((element, trial)) => out.push_str(&format!(
            ">\n    <{element} type=\"{}\" message=\"{}\"/>\n  </testcase>\n",
            attribute(&figures::verdict_words(trial.verdict)),
            attribute(&trial.reason.to_string()),
        )),
        None => match answer_said(view, group) {
            Some(said) => out.push_str(&format!(
                ">\n    <system-out>{}</system-out>\n  </testcase>\n",
                attribute(&said)
            )),
            None => out.push_str("/>\n"),
        },
    }
}

fn answer_said(view: &ResultView, group: &ConfigurationGroup<'_>) -> Option<String> {
    let answer = view.recommendation.as_ref()?;
    let is_it = groups::is_chosen(view, group.configuration);
    let claim = AnswerClaim::new(view, answer);
    let trend = claim.describe_trend();
    let said = std::iter::once(content::headline(view).sentence);
    is_it.then(|| join_words(said.chain(trend), " "))
}

fn attribute(text: &str) -> String {
    let mut out = String::new();
    for c in text::one_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => {}
            _ => out.push(c),
        }
    }
    out
}
