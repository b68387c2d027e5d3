//! The section "Why did it pause?" with its drawing.

use loadline_analysis::pauses::{ApplicationPauses, PauseEvidence, SamplerEvidence};
use loadline_analysis::record::TrialPhase;
use loadline_report::{ResultView, render_terminal};

use crate::fixture;

const MS: u64 = 1_000_000;

/// A search with a first sound trial that was stopped for most of each 100 ms of its measured
/// phase.
pub fn view() -> ResultView {
    let mut view = fixture::search();
    let sound = view
        .trials
        .iter_mut()
        .find(|t| {
            t.verdict.is_evidence()
                && t.evidence
                    .phases
                    .iter()
                    .any(|p| p.phase == TrialPhase::Measure)
        })
        .expect("a sound trial");
    let measure = sound
        .evidence
        .phases
        .iter()
        .find(|p| p.phase == TrialPhase::Measure);
    let measure = *measure.expect("it was looked for");
    let at = |ms: u64| measure.start + ms * MS;
    let periods = (measure.end - measure.start) / (100 * MS);
    let stops = (0..periods).map(|n| (at(100 * n + 25), at(100 * (n + 1))));
    sound.evidence.pauses = Some(PauseEvidence {
        sampler: SamplerEvidence {
            estimator: "flatline-per-cpu".to_owned(),
            gaps_ns: vec![(at(40), at(43))],
            ..SamplerEvidence::default()
        },
        throttled_ns: stops.clone().collect(),
        safepoints_ns: (0..periods / 4)
            .map(|n| (at(400 * n + 5), at(400 * n + 115), MS))
            .collect(),
        application: Some(ApplicationPauses {
            source: "hiccup".to_owned(),
            pauses_ns: stops.collect(),
            ..ApplicationPauses::default()
        }),
        ..PauseEvidence::default()
    });
    view
}

#[test]
fn the_page_draws_pauses_collections_and_throttling_on_one_axis() {
    let html = loadline_report::render_html(&view());
    let section = html
        .split("<section id=\"pauses\">")
        .nth(1)
        .expect("the section");
    let section = section.split("</section>").next().expect("its end");
    assert_eq!(
        section.matches("<svg").count(),
        2,
        "the whole phase, and close up"
    );
    for class in ["seen", "slowest", "stopped", "throttled", "unseen-time"] {
        assert!(section.contains(&format!("class=\"{class}\"")), "{class}");
    }
    assert!(section.contains("seconds since the measured phase began"));
    assert!(html.len() <= 500_000, "{}", html.len());
}

/// Without a JVM there is no knowledge of collections.
#[test]
fn without_a_jvm_no_share_of_collections_is_said() {
    let dashes = |view: &ResultView| {
        let text = render_terminal(view, 200);
        let table = text.split_once("Why did it pause?").expect("the section").1;
        let table = table.split_once("Pauses over 50 ms").expect("its legend").0;
        table.matches('–').count()
    };
    let mut native = view();
    for trial in &mut native.trials {
        trial.evidence.gc = None;
    }
    assert_eq!(dashes(&native), dashes(&view()) + 2);
}

/// The most spans a record keeps, in every lane.
#[test]
fn a_record_full_of_spans_stays_small() {
    let mut view = view();
    let paused = view.trials.iter_mut().find(|t| t.evidence.pauses.is_some());
    let evidence = paused.expect("one paused").evidence.pauses.as_mut();
    let evidence = evidence.expect("it was looked for");
    let start = evidence.throttled_ns[0].0;
    let many: Vec<(u64, u64)> = (0..10_000)
        .map(|n| (start + n * MS, start + n * MS + 600_000))
        .collect();
    evidence.safepoints_ns = many.iter().map(|(a, b)| (*a, *b, 0)).collect();
    evidence.stalls_ns = many.clone();
    evidence.throttled_ns = many;
    let drawn = loadline_report::render_html(&view);
    let section = drawn
        .split("<section id=\"pauses\">")
        .nth(1)
        .expect("the section");
    let section = section.split("</section>").next().expect("its end");
    assert!(section.len() < 150_000, "{}", section.len());
}
