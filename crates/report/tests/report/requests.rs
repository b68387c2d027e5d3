//! A mix: each request has a row, and its objective is named everywhere.

use loadline_analysis::latency::{empty_histogram, encode_histogram};
use loadline_analysis::record::{RequestEvidence, TrialPhase};
use loadline_report::{ResultView, render_markdown};

use crate::fixture;

/// The search of the fixture under a mix of two requests, one of which always failed.
fn mixed(failing: &str) -> ResultView {
    let mut view = fixture::search();
    for trial in &mut view.trials {
        let loads = trial.evidence.load.iter_mut();
        for load in loads.filter(|load| load.phase == TrialPhase::Measure) {
            let none = encode_histogram(&empty_histogram()).expect("an empty one");
            let request = |name: &str, ok, failed, latency: &str| RequestEvidence {
                name: name.to_owned(),
                ok,
                failed,
                unfinished: 0,
                latency: latency.to_owned(),
            };
            let seconds = load.duration.as_secs();
            load.by_request = vec![
                request(failing, 0, 2 * seconds, &none),
                request("GET /owners", load.ok, 0, &load.latency),
            ];
        }
    }
    view
}

/// The section by its heading.
fn section(view: &ResultView) -> String {
    let page = render_markdown(view);
    let begin = page.find("## Each request").expect("the section");
    let rest = &page[begin..];
    let end = rest[2..].find("\n### ").map_or(rest.len(), |at| at + 2);
    rest[..end].trim_end().to_owned()
}

#[test]
fn each_request_of_a_mix_has_a_row() {
    insta::assert_snapshot!(section(&mixed("POST /orders")), @"
    ## Each request

    Each request of the mix in the measured phase; medians of the trials. Latency counts from the intended send time; a request that failed counts as slower than every other, and a dash means that the median lies there.

    | Request | Sent | Failed | p50 | p90 | p99 | p99.9 |
    | --- | ---: | ---: | ---: | ---: | ---: | ---: |
    | GET /owners | 300/s | 0 % | 3.88ms | 5.07ms | 16.3ms | 27.3ms |
    | POST /orders | 2/s | 100 % | – | – | – | – |
    ");
}

#[test]
fn a_load_of_one_request_has_no_such_section() {
    assert!(!render_markdown(&fixture::search()).contains("Each request"));
}

#[test]
fn a_name_that_holds_a_secret_is_shown_without_it() {
    let view = mixed("POST /orders?token=hunter2");
    let shown = loadline_report::redact::redact_record(&view.trials[0]);
    let mut requests = shown.evidence.load.iter().flat_map(|l| &l.by_request);
    assert!(requests.all(|r| !r.name.contains("hunter2")), "{shown:?}");
}
