//! The study of starts: caches in pairs, start time over the CPU limit.

use std::time::Duration;

use loadline_analysis::record::{CacheEvidence, StartCache, TrialRecord};
use loadline_report::ResultView;
use loadline_sizing::cache::CacheKind;
use loadline_sizing::{Bytes, Cpus};

use crate::fixture;

fn view(trials: Vec<TrialRecord>) -> ResultView {
    ResultView {
        recommendation: None,
        trials,
        ..fixture::search()
    }
}

/// A trial that became ready after this many seconds.
fn start(repeat: u32, seconds: f64) -> TrialRecord {
    let trials = fixture::search().trials;
    let sound = |t: &TrialRecord| t.evidence.start.ready.is_some() && t.verdict.is_evidence();
    let mut trial = trials.into_iter().find(sound).expect("a sound trial");
    trial.repeat = repeat;
    let start = &mut trial.evidence.start;
    start.ready = Some(Duration::from_secs_f64(seconds));
    start.cpu = Some(Duration::from_secs_f64(seconds * 0.9));
    start.rss = Some(Bytes::from_mib(200));
    start.pss = Some(Bytes::from_mib(190));
    start.classes = Some(3000);
    start.classes_archived = Some(1000);
    trial
}

fn with_cache(mut trial: TrialRecord) -> TrialRecord {
    let kind = CacheKind::Aot;
    trial.configuration.cache = Some(StartCache { kind, requests: 20 });
    trial.evidence.start.rss = Some(Bytes::from_mib(206));
    trial.evidence.start.classes_archived = Some(2940);
    trial.evidence.cache = Some(CacheEvidence {
        kind,
        archive: Bytes::from_mib(33),
        training: Duration::from_secs(9),
    });
    trial
}

/// Ten starts with a cache that saves 40 %, and ten without.
pub fn caches() -> ResultView {
    let pair = |n: u32| {
        let seconds = 4.0 * (1.0 + f64::from(n) / 100.0);
        [start(n, seconds), with_cache(start(n, seconds * 0.6))]
    };
    view((1..=10).flat_map(pair).collect())
}

/// Starts at four CPU limits that obey 0.4 s + 5.2 s / CPUs.
pub fn limits() -> ResultView {
    let trials = [250, 500, 1000, 2000].map(|millis| {
        let limit = Cpus::from_millis(millis);
        let mut trial = start(1, 0.4 + 5.2 / limit.as_f64());
        trial.configuration.cpu = Some(limit);
        trial
    });
    view(trials.into())
}

#[test]
fn a_cache_is_compared_in_pairs_and_in_words() {
    let view = caches();
    let text = loadline_report::render_terminal(&view, 200);
    for part in [
        "What does a start cost?",
        "aot, 20 requests: ready in 2.53s instead of 4.22s, 40",
        "% to -40.0 %, 10 pairs)",
        "Memory at ready 3",
        "The file has 33Mi.",
        "0.60 (0.60 to 0.60)",
        "98 %",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(loadline_report::render_html(&view).contains("What does a start cost?"));
}

#[test]
fn limits_give_a_model_probes_and_a_boost() {
    let text = loadline_report::render_terminal(&limits(), 200);
    for part in [
        "t = 0.40 s + 5.20 s / CPUs.",
        "left out of the fit, is predicted within",
        "(outside)",
        "periodSeconds 2, failureThreshold 32",
        "A start boost from 500m to 2 CPU would save 7.80s of 10.8s",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_result_that_varies_neither_says_nothing_about_starts() {
    let text = loadline_report::render_terminal(&fixture::search(), 200);
    assert!(!text.contains("What does a start cost?"), "{text}");
}
