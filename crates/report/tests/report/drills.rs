//! A drill: before, during and after an outage, recovered values, faults, and stubs.

use std::time::Duration;

use loadline_analysis::latency::{empty_histogram, encode_histogram};
use loadline_analysis::record::{
    DependencyEvidence, DueEvidence, LinkEvidence, LinkSecond, OutageEvidence, ProxyEvidence,
    SharedEvidence, StubEvidence, TrialPhase, TrialPurpose,
};
use loadline_report::{ResultView, render_html, render_markdown};
use loadline_sizing::Bytes;

use crate::fixture::{self, Plan};

const FROM: usize = 10;
const TO: usize = 15;
const LENGTH: usize = 30;

/// A stub that is down from 10 s to 15 s of 30 s at 100 requests a second: half of the requests
/// fail then, each asks three times, threads double and come back within 3 s, half of the
/// connections are lost.
fn drill() -> ResultView {
    let plan = Plan {
        memory_mib: 256,
        cpu_millis: 1000,
        purpose: TrialPurpose::Matrix,
        options: Vec::new(),
        noisy: false,
        seconds: LENGTH as u64,
    };
    let mut trial = fixture::trial(1, &plan);
    trial.slo = "p90<50ms,errors<1%,recovers<10s".parse().expect("an SLO");
    let evidence = &mut trial.evidence;
    let is_down = |second: usize| (FROM..TO).contains(&second);
    for load in evidence
        .load
        .iter_mut()
        .filter(|l| l.phase == TrialPhase::Measure)
    {
        load.by_second = (0..LENGTH).map(|second| due(is_down(second))).collect();
    }
    evidence.outages = vec![OutageEvidence {
        dependency: "prices".to_owned(),
        what: "down".to_owned(),
        from: Duration::from_secs(FROM as u64),
        to: Duration::from_secs(TO as u64),
    }];
    let measured = evidence
        .phases
        .iter()
        .find(|p| p.phase == TrialPhase::Measure);
    let begin = measured.expect("a phase").start;
    for second in evidence.seconds.iter_mut().filter(|s| s.at_ns > begin) {
        let at = ((second.at_ns - begin) / 1_000_000_000) as usize;
        let is_high = (FROM..TO + 3).contains(&at);
        second.threads = Some(if is_high { 61 } else { 24 });
        second.sockets = Some(if is_high { 10 } else { 20 });
        second.heap_after = Some(Bytes::from_mib(80));
        second.heap_committed = Some(Bytes::from_mib(120));
    }
    let second = |second: usize| LinkSecond {
        opened: 1,
        refused: if is_down(second) { 300 } else { 0 },
        exchanges: if is_down(second) { 0 } else { 100 },
        ..LinkSecond::default()
    };
    evidence.dependencies = vec![DependencyEvidence {
        name: "prices".to_owned(),
        cpus: "1".to_owned(),
        stub: Some(StubEvidence {
            requests: 2500,
            unanswered: [("GET /stock/{id}".to_owned(), 12)].into(),
        }),
        link: Some(LinkEvidence {
            toxics: vec!["down, at 10s for 5s".to_owned()],
            total: LinkSecond {
                opened: 30,
                refused: 1500,
                exchanges: 2500,
                upstream_bytes: 250_000,
                downstream_bytes: 1_000_000,
                ..LinkSecond::default()
            },
            seconds: (0..LENGTH).map(second).collect(),
        }),
        ..DependencyEvidence::default()
    }];
    evidence.proxy = Some(ProxyEvidence {
        cpus: "1".to_owned(),
        window: Some(Duration::from_secs(30)),
        cpu: Duration::from_millis(600),
        lag_p99: Duration::from_micros(80),
        lag_max: Duration::from_micros(900),
    });
    let mut view = fixture::matrix();
    view.slo = trial.slo.clone();
    view.trials = vec![trial];
    view
}

fn due(is_down: bool) -> DueEvidence {
    let ok = if is_down { 50 } else { 100 };
    let mut histogram = empty_histogram();
    histogram
        .record_n(20_000_000, ok)
        .expect("it is in its bounds");
    DueEvidence {
        ok,
        failed: 100 - ok,
        latency: encode_histogram(&histogram).expect("it is small"),
    }
}

/// A section by its heading.
fn section(heading: &str) -> String {
    let page = render_markdown(&drill());
    let begin = page.find(&format!("## {heading}")).expect("the section");
    let rest = &page[begin..];
    let end = ["\n##", "\n<details>"]
        .iter()
        .filter_map(|mark| rest[2..].find(mark));
    let end = end.min().map_or(rest.len(), |at| at + 2);
    rest[..end].trim_end().to_owned()
}

#[test]
fn the_parts_of_a_drill_and_what_came_back_are_told() {
    insta::assert_snapshot!(section("Around the outage"), @"
    ## Around the outage

    Away or slow: prices (down, 10 s to 15 s). A request belongs to the second in which it was due. Asked counts round trips to dependencies and refused connections per request; retries add to it. It has recovered when from then on every 1 s keep the SLO. Latencies in other tables are those before the outage.

    | Trial | Part | Requests | Errors | p50 | p99 | Asked | Against before | Memory | Recovered |
    | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
    | 1 | before | 900 | 0 % | 20.0ms | 20.0ms | 1.00 | 1.00x | 156Mi |  |
    | 1 | during | 500 | 50 % | 20.0ms | – | 3.00 | 3.00x | 151Mi |  |
    | 1 | after | 1500 | 0 % | 20.0ms | 20.0ms | 1.00 | 1.00x | 157Mi | after 0 s |

    Whether values recovered from the outage: the largest before it, the value furthest from that since the outage began, and the time after its end from which it stays within 10 % of before. A pool that loses its connections shows in the sockets.

    | Trial | What | Before | Furthest | At the end | As before |
    | ---: | --- | ---: | ---: | ---: | --- |
    | 1 | threads | 24 | 61 | 24 | after 3 s |
    | 1 | sockets | 20 | 10 | 20 | after 3 s |
    | 1 | heap after collections | 80Mi | 80Mi | 80Mi | all the time |
    | 1 | memory | 156Mi | 157Mi | 157Mi | all the time |
    ");
}

#[test]
fn what_was_wrong_on_the_way_is_told() {
    insta::assert_snapshot!(section("What was wrong on the way"), @"
    ## What was wrong on the way

    loadline's own proxy stood between the application and these dependencies, at their own addresses. Counters are those of the measured phase, all trials together; a round trip is a turn of the application to the dependency, a connection that was refused counts as none.

    | Dependency | Toxics | Connections | Refused | Reset | Round trips | a request | Sent | Received |
    | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
    | prices | down, at 10s for 5s | 30 | 1500 | 0 | 2500 | 0.28 | 0.24Mi | 0.95Mi |

    The proxy used 2 % of one CPU at most, and was 80us late (p99, the largest of all trials).
    ");
}

#[test]
fn a_stub_names_what_it_had_no_answer_for() {
    insta::assert_snapshot!(section("What it depended on"), @"
    ## What it depended on

    Fresh for each trial, outside the application's limits. Each figure is the largest of all trials, in the measured phase; share is of the CPU time that it could have had. A trial that fails while one of them is at its limit says nothing about the application: it is INVALID.

    | Dependency | Trials | Ready in | CPU | Share | Throttled | Peak memory | CPUs |
    | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |
    | prices | 1 | – | – | – | – | – | 1 |

    prices is a stub: loadline answered 2500 requests in its place, in all trials together. 12 requests had no answer, and got a 404: GET /stock/{id} (12).
    ");
}

#[test]
fn what_trials_share_is_said_of_their_starts() {
    let mut view = drill();
    for (trials, anew) in [(0, None), (1, None), (0, Some("db had ended (signal 9)"))] {
        let mut trial = view.trials[0].clone();
        trial.evidence.dependencies = vec![DependencyEvidence {
            name: "db".to_owned(),
            cpus: "1".to_owned(),
            shared: Some(SharedEvidence {
                trials,
                reset: (trials > 0).then_some(Duration::from_millis(30)),
                anew: anew.map(str::to_owned),
            }),
            ..DependencyEvidence::default()
        }];
        view.trials.push(trial);
    }
    view.trials.remove(0);
    let said = "The trials share db: seeded once, reset between two of them, up to 2 starts of the application on one. A fresh start is one of the application: what earlier ones left there (caches, tables that grew) is part of it. Started again, and seeded again, 1 time: db had ended (signal 9).";
    let page = render_markdown(&view);
    assert_eq!(
        page.matches(said).count(),
        2,
        "headline and section: {page}"
    );
}

#[test]
fn other_tables_are_about_the_time_before() {
    let latency = section("Latency by percentile");
    assert!(
        latency.contains("| 20.0ms | 20.0ms | 20.0ms |"),
        "{latency}"
    );
    assert!(section("Which sizes keep the SLO?").contains("Latencies are those before the outage"));
}

#[test]
fn the_charts_have_the_outage_as_a_band_over_all_of_them() {
    let page = render_html(&drill());
    let begin = page.find("\"outages\":").expect("the band");
    let end = page[begin..].find("]]").expect("its end") + begin;
    assert!(
        page[begin..end].starts_with("\"outages\":[[\"prices down\","),
        "{}",
        &page[begin..end]
    );
    for chart in ["latency-time", "cpu", "memory", "errors", "heap", "threads"] {
        assert!(page.contains(&format!("id=\"chart-{chart}\"")), "{chart}");
    }
    assert!(!render_html(&fixture::matrix()).contains("id=\"chart-threads\""));
}
