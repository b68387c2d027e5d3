//! Records that attack their reader: markup, quotes, escape sequences, huge texts, no numbers.

use loadline_analysis::record::{InvalidReason, TrialVerdict, ValueProvenance};
use loadline_report::ResultView;

use crate::fixture;

/// One text with everything in it.
pub const ATTACK: &str = "\"><img src=x onerror=hacked=1></script><script>hacked=1</script>\u{1b}[31m\u{1b}]0;t\u{7}\u{202e}'`|*_[x](javascript:x)@team=1+1\r\n\u{2028}\u{0}";

/// The search with the attack in every text field.
pub fn view() -> ResultView {
    let mut view = fixture::search();
    view.title = ATTACK.to_owned();
    view.question = Some(ATTACK.to_owned());
    view.command.push(ATTACK.to_owned());
    view.command.push("--db.password=hunter2".to_owned());
    view.experiment.push_str(ATTACK);
    view.experiment.push_str("\npassword = \"hunter2\"\n");
    view.load = loadline_report::LoadWords::without_rate(ATTACK.to_owned());
    view.warnings = vec![ATTACK.to_owned(), "x".repeat(1_000_000)];
    view.incomplete = Some(ATTACK.to_owned());
    view.id = ATTACK.to_owned();
    view.machine.cpu_model = ATTACK.to_owned();
    view.machine.jdks = vec![ATTACK.to_owned()];
    view.machine.kernel = ATTACK.to_owned();
    view.machine.cgroup = ATTACK.to_owned();
    view.machine.loadline = ATTACK.to_owned();
    for trial in &mut view.trials {
        trial.reason = format!("{ATTACK}{}", "y".repeat(100_000)).into();
        trial.configuration.label = ATTACK.to_owned();
        trial.configuration.jdk = Some(ATTACK.to_owned());
        trial
            .configuration
            .env
            .insert(ATTACK.to_owned(), ATTACK.to_owned());
        trial
            .configuration
            .env
            .insert("DB_PASSWORD".to_owned(), "hunter2".to_owned());
        let option = fixture::option(&format!("-D{ATTACK}"), ValueProvenance::User);
        trial.configuration.jvm_options.push(option);
        trial.evidence.warnings.push(ATTACK.to_owned());
        trial
            .evidence
            .last_output
            .push(format!("{ATTACK} password=hunter2"));
        for objective in &mut trial.objectives {
            objective.measured = Some(f64::NAN);
        }
        for load in &mut trial.evidence.load {
            load.achieved_rate = f64::NAN;
            load.offered_rate = Some(f64::INFINITY);
        }
    }
    // One damaged histogram, one trial without anything.
    if let Some(load) = view.trials[1].evidence.load.last_mut() {
        load.latency = ATTACK.to_owned();
    }
    view.trials[2].evidence = Default::default();
    if let Some(recommendation) = &mut view.recommendation {
        recommendation.configuration = view.trials[14].configuration.clone();
        if let Some(next) = &mut recommendation.next_smaller {
            next.breaks = ATTACK.to_owned().into();
        }
    }
    view
}

/// What no format may contain.
fn has_control(text: &str) -> bool {
    let is_bad = |c: char| {
        (c.is_control() && !"\n\t\r".contains(c)) || ('\u{202a}'..='\u{202e}').contains(&c)
    };
    text.chars().any(is_bad)
}

#[test]
fn html_holds_no_markup_of_others() {
    let html = loadline_report::render_html(&view());
    assert_eq!(html.matches("<script").count(), 4);
    assert_eq!(html.matches("</script>").count(), 4);
    assert!(!html.contains("<img"));
    assert!(!html.contains("hunter2"));
    assert!(!has_control(&html));
}

#[test]
fn a_megabyte_of_text_does_not_make_a_megabyte_of_page() {
    let html = loadline_report::render_html(&view());
    assert!(html.len() < 2_000_000, "{}", html.len());
    assert!(html.contains("more characters)"));
}

#[test]
fn other_formats_hold_nothing_that_acts() {
    let view = view();
    for text in [
        loadline_report::render_terminal(&view, 100),
        loadline_report::render_markdown(&view),
        loadline_report::render_csv(&view),
        loadline_report::render_seconds(&view),
        loadline_report::render_junit(&view),
    ] {
        assert!(!has_control(&text), "{}", &text[..200]);
        assert!(!text.contains("hunter2"));
    }
    let markdown = loadline_report::render_markdown(&view);
    for line in outside_fences(&markdown) {
        // The content of a code span stays text.
        let words = line.split('`').next().unwrap_or_default();
        assert!(!words.contains("<img"), "{line}");
        assert!(!words.contains("](javascript"), "{line}");
    }
    assert!(!loadline_report::render_terminal(&view, 100).contains('\r'));
    assert!(!loadline_report::render_json(&view).contains("hunter2"));
    assert!(!loadline_report::render_json_lines(&view).contains("hunter2"));
}

#[test]
fn a_reason_that_quotes_a_secret_is_exported_without_it() {
    let mut view = fixture::search();
    let quote = "the last lines it wrote: password=hunter2".to_owned();
    for trial in &mut view.trials {
        trial.reason = quote.clone().into();
    }
    let recommendation = view.recommendation.as_mut().expect("it has one");
    let smaller = recommendation.next_smaller.as_mut().expect("it has one");
    smaller.breaks = quote.clone().into();
    recommendation
        .proof
        .failures
        .push(("t-1".to_owned(), quote));
    let json = loadline_report::render_json(&view);
    assert!(!json.contains("hunter2"));
    assert!(json.matches("password=[redacted]").count() >= view.trials.len() + 2);
}

/// The lines that are no code block.
fn outside_fences(markdown: &str) -> Vec<&str> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for line in markdown.lines() {
        let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            None if ticks.len() >= 3 => fence = Some(ticks),
            Some(open) if ticks.len() >= open.len() => fence = None,
            None => lines.push(line),
            Some(_) => {}
        }
    }
    assert_eq!(fence, None, "a code block stays open");
    lines
}

#[test]
fn a_result_without_trials_says_so() {
    let mut view = fixture::search();
    view.trials.clear();
    view.recommendation = None;
    let text = loadline_report::render_terminal(&view, 80);
    assert!(text.starts_with("No trial has finished yet.\n"), "{text}");
    for text in [
        loadline_report::render_markdown(&view),
        loadline_report::render_html(&view),
        loadline_report::render_csv(&view),
        loadline_report::render_junit(&view),
    ] {
        assert!(!text.contains("NaN"), "{text}");
    }
}

#[test]
fn trials_that_say_nothing_are_no_verdict() {
    let mut view = fixture::search();
    view.recommendation = None;
    for trial in &mut view.trials {
        trial.verdict = TrialVerdict::Invalid(InvalidReason::ToolError);
    }
    assert!(
        loadline_report::render_terminal(&view, 80)
            .starts_with("Could not measure: no trial was valid (last: ")
    );
    assert!(loadline_report::render_junit(&view).contains("errors=\"9\""));
}
