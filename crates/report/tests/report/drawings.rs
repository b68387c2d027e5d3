//! The drawings of prices, rates, starts and the warm-up: each shows what its table says.

use loadline_analysis::deployment::{
    CellResult, Deployment, FrontPoint, PriceSource, PricedSize, WhyNot,
};
use loadline_analysis::price::{DeploymentCost, InstanceSize};
use loadline_analysis::recommend::LevelSize;
use loadline_analysis::record::{TrialPurpose, TrialRecord, TrialVerdict};
use loadline_analysis::search::cheapest::CheaperDimension;
use loadline_report::ResultView;
use loadline_sizing::{Bytes, Cpus};
use std::time::Duration;

use crate::fixture::{self, Plan};
use crate::hostile::ATTACK;
use crate::startup;

fn size(millis: u32, gib: u64) -> InstanceSize {
    InstanceSize {
        cpu: Cpus::from_millis(millis),
        memory: Bytes::from_gib(gib),
    }
}

fn priced(replicas: u32, millis: u32, gib: u64) -> PricedSize {
    let limits = size(millis, gib);
    let hour = f64::from(replicas) * (limits.cpu.as_f64() * 0.04 + limits.memory.as_gib() * 0.0045);
    PricedSize {
        variant: String::new(),
        limits,
        billed: limits,
        replicas,
        cost: DeploymentCost {
            per_hour: hour,
            per_month: hour * 730.0,
            per_million_requests: None,
        },
    }
}

fn cell(millis: u32, gib: u64, carried: Option<f64>, too_high: Option<f64>) -> CellResult {
    CellResult {
        variant: String::new(),
        limits: size(millis, gib),
        carried,
        too_high,
        priced: carried.map(|rate| priced((900.0 / rate).ceil() as u32, millis, gib)),
        could_not_measure: false,
    }
}

/// The simulated search, with a deployment: half CPUs carry 450/s each.
pub fn cheapest() -> ResultView {
    let mut view = fixture::search();
    let failed = view
        .trials
        .iter()
        .rev()
        .find(|t| t.verdict == TrialVerdict::SloMiss);
    let failed = failed.expect("a trial that missed").id.clone();
    let why = |dimension, neighbour, trial: Option<&String>| WhyNot {
        dimension,
        neighbour,
        trial: trial.cloned(),
        breaks: "p99<50ms was measured as 109 ms".to_owned(),
    };
    let point = |priced: PricedSize, p99: u64| FrontPoint {
        priced,
        p99: Some(Duration::from_millis(p99)),
        start: Some(Duration::from_millis(9400)),
    };
    let chosen = priced(2, 500, 1);
    let recommendation = view.recommendation.as_mut().expect("it has one");
    recommendation.deployment = Some(Deployment {
        found: None,
        compared: Vec::new(),
        offer: PriceSource {
            name: "fargate".to_owned(),
            region: "test-1".to_owned(),
            arch: "x86_64".to_owned(),
            source: "invented".to_owned(),
            licence: "none".to_owned(),
            date: "2026-11-01".to_owned(),
            warning: None,
        },
        rate: 900.0,
        headroom: 0.0,
        spare: 0,
        chosen: chosen.clone(),
        each: 450.0,
        is_proven: true,
        cells: vec![
            cell(500, 1, Some(450.0), Some(500.0)),
            cell(500, 2, Some(450.0), None),
            cell(250, 1, Some(150.0), Some(180.0)),
            cell(1000, 2, Some(900.0), None),
            cell(250, 0, None, Some(100.0)),
        ],
        why_not: vec![
            why(CheaperDimension::Replicas, priced(1, 500, 1), Some(&failed)),
            why(CheaperDimension::Memory, priced(2, 500, 0), None),
        ],
        front: vec![
            point(chosen, 31),
            point(priced(2, 500, 2), 24),
            point(priced(2, 1000, 2), 9),
        ],
        left_out: Vec::new(),
    });
    view
}

/// Three CPU limits at three rates; a CPU carries 240/s.
pub fn rates() -> ResultView {
    let mut trials: Vec<TrialRecord> = Vec::new();
    for millis in [250, 500, 1000] {
        for rate in [50.0, 100.0, 200.0] {
            let carries = f64::from(millis) / 1000.0 * 240.0;
            let plan = Plan {
                memory_mib: 600,
                cpu_millis: millis,
                purpose: TrialPurpose::Matrix,
                options: Vec::new(),
                noisy: false,
                seconds: 5,
            };
            let mut trial = fixture::trial(trials.len() as u64 + 1, &plan);
            trial.configuration.rate = Some(rate);
            trial.configuration.label = format!("{millis}m at {rate}/s");
            trial.verdict = if rate > carries {
                TrialVerdict::SloMiss
            } else {
                TrialVerdict::Pass
            };
            trials.push(trial);
        }
    }
    ResultView {
        trials,
        ..fixture::matrix()
    }
}

/// The one drawing of a class; it is there, and every number in it is one.
fn drawing(view: &ResultView, class: &str) -> String {
    let html = loadline_report::render_html(view);
    let begin = format!("<svg class=\"{class}\"");
    let (_, rest) = html
        .split_once(&begin)
        .unwrap_or_else(|| panic!("no {class}"));
    let (svg, after) = rest.split_once("</svg>").expect("it ends");
    assert!(!after.contains(&begin), "two of {class}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    svg.to_owned()
}

fn count(svg: &str, class: &str) -> usize {
    svg.matches(&format!("class=\"{class}\"")).count()
}

/// The places of the marks of a class, (x, y).
fn places(svg: &str, titled: &str) -> Vec<(f64, f64)> {
    let lines = svg.lines().filter(|line| line.contains(titled));
    let number = |line: &str, name: &str| -> Option<f64> {
        let (_, rest) = line.split_once(&format!(" {name}=\""))?;
        rest.split_once('"')?.0.parse().ok()
    };
    lines
        .filter_map(|line| Some((number(line, "cx")?, number(line, "cy")?)))
        .collect()
}

#[test]
fn a_price_is_drawn_with_what_it_buys_and_what_is_cheaper() {
    let svg = drawing(&cheapest(), "price");
    // The mark in the key and three on the front; one cross measured, the other never ran; a ring each.
    assert_eq!((count(&svg, "pass"), count(&svg, "fail")), (4, 2), "{svg}");
    assert_eq!(count(&svg, "ring"), 2);
    let front = places(&svg, "a month, p99");
    assert_eq!(front.len(), 3, "{svg}");
    // Dearer is further right, quicker is further down.
    assert!(
        front.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1),
        "{front:?}"
    );
    assert!(
        svg.contains("2 x 500m vCPU, 1Gi, recommended: $35.77 a month, p99 31ms"),
        "{svg}"
    );
    let text = loadline_report::render_markdown(&cheapest());
    assert!(text.contains("| 2 x 500m vCPU, 1Gi | 35.77 |"), "{text}");
    assert!(!loadline_report::render_html(&fixture::search()).contains("<svg class=\"price\""));
}

#[test]
fn less_memory_than_the_size_on_offer_is_the_recommended_point() {
    let mut view = cheapest();
    let recommendation = view.recommendation.as_mut().expect("it has one");
    let configuration = recommendation.configuration.clone();
    let deployment = recommendation.deployment.as_mut().expect("it has one");
    deployment.found = Some(deployment.chosen.limits);
    deployment.chosen.limits.memory = Bytes::from_mib(640);
    deployment.chosen.cost.per_month -= 4.0;
    for trial in view
        .trials
        .iter_mut()
        .filter(|t| t.verdict == TrialVerdict::Pass)
    {
        (trial.purpose, trial.configuration) = (TrialPurpose::Prove, configuration.clone());
    }
    let svg = drawing(&view, "price");
    assert_eq!(count(&svg, "ring"), 2, "the key and {svg}");
    assert!(
        svg.contains("2 x 500m vCPU, 640Mi, recommended: $31.77 a month, p99"),
        "{svg}"
    );
}

#[test]
fn what_each_size_carries_is_a_table_and_a_drawing() {
    let table = loadline_report::markdown_section(&cheapest(), "scaling").expect("the section");
    insta::assert_snapshot!(table, @"
    One replica alone. Carried is the highest rate that kept the SLO, too high is the lowest rate above it that did not: what the size can carry lies between. If carried per CPU falls with the size, more and smaller replicas carry more for the same CPUs; if it falls with ever smaller sizes, each replica has fixed costs: its heap, its collector, its compiler.

    | CPU | Memory | Carried | Too high | Carried per CPU |
    | ---: | ---: | ---: | ---: | ---: |
    | 250m | 0 | – | 100/s | – |
    | 250m | 1Gi | 150/s | 180/s | 600/s |
    | 500m | 1Gi | 450/s | 500/s | 900/s |
    | 500m | 2Gi | 450/s | – | 900/s |
    | 1 | 2Gi | 900/s | – | 900/s |
    ");
    let svg = drawing(&cheapest(), "scaling");
    assert_eq!((count(&svg, "pass"), count(&svg, "fail")), (5, 4), "{svg}");
    // Half a CPU and one CPU are as good for each CPU: both on the line.
    let at = |name: &str| places(&svg, name)[0];
    let (half, one) = (at("500m CPU, 2Gi: carried"), at("1 CPU, 2Gi: carried"));
    assert!(half.0 < one.0 && half.1 > one.1, "{half:?} {one:?}");
    assert!(!loadline_report::render_html(&fixture::search()).contains("<svg class=\"scaling\""));
}

#[test]
fn a_matrix_of_rates_says_what_each_size_carries_too() {
    let table = loadline_report::markdown_section(&rates(), "scaling").expect("the section");
    let rows: Vec<&str> = table
        .lines()
        .filter(|l| l.starts_with("| "))
        .skip(2)
        .collect();
    assert_eq!(
        rows,
        [
            "| 250m | 600Mi | 50/s | 100/s | 200/s |",
            "| 500m | 600Mi | 100/s | 200/s | 200/s |",
            "| 1 | 600Mi | 200/s | – | 200/s |",
        ]
    );
    drawing(&rates(), "scaling");
}

#[test]
fn caches_and_limits_are_drawn_as_they_are_said() {
    let svg = drawing(&startup::caches(), "caches");
    // Reference and cache, and the key.
    assert_eq!(
        (count(&svg, "start"), count(&svg, "footprint")),
        (3, 3),
        "{svg}"
    );
    assert!(
        svg.contains("aot, 20 requests, start time: 0.60 (0.60 to 0.60)"),
        "{svg}"
    );
    let svg = drawing(&startup::limits(), "start-cpu");
    assert!(svg.contains("0.40 s + 5.20 s / CPUs"), "{svg}");
    assert_eq!(places(&svg, "ready after").len(), 4, "{svg}");
    assert!(
        svg.contains("500m CPU, between others: predicted 10.8s, measured 10.8s"),
        "{svg}"
    );
    for class in ["caches", "start-cpu"] {
        let html = loadline_report::render_html(&fixture::matrix());
        assert!(
            !html.contains(&format!("<svg class=\"{class}\"")),
            "{class}"
        );
    }
}

#[test]
fn the_warm_up_is_drawn_from_its_first_second() {
    let svg = drawing(&fixture::search(), "warm-up");
    // Four configurations, each in the key and as a line; the end of the warm-up.
    for series in ["trend s1", "trend s2", "trend s3", "trend s4"] {
        assert_eq!(count(&svg, series), 2, "{series}");
    }
    assert_eq!(count(&svg, "edge"), 2);
}

#[test]
fn hostile_texts_and_numbers_stay_text_in_drawings() {
    let mut view = cheapest();
    let deployment = view
        .recommendation
        .as_mut()
        .and_then(|r| r.deployment.as_mut());
    let deployment = deployment.expect("it has one");
    for cell in &mut deployment.cells {
        cell.variant = ATTACK.to_owned();
    }
    deployment.cells[0].carried = Some(f64::NAN);
    deployment.cells[1].too_high = Some(f64::INFINITY);
    deployment.cells[2].carried = Some(-1.0);
    deployment.front[1].priced.variant = ATTACK.to_owned();
    deployment.front[1].priced.cost.per_month = f64::NAN;
    deployment.why_not[0].breaks = ATTACK.to_owned();
    for class in ["price", "scaling"] {
        let svg = drawing(&view, class);
        assert!(!svg.contains("<img") && !svg.contains("<script"), "{svg}");
    }
}

#[test]
fn the_knee_is_drawn_once_where_memory_alone_was_searched() {
    let svg = drawing(&fixture::search(), "knee");
    // Every size of the table up to twice the answer: five kept the SLO but for the 1Gi of the
    // first trial, four broke it; one of each in the key.
    assert_eq!((count(&svg, "pass"), count(&svg, "fail")), (5, 5), "{svg}");
    assert_eq!(count(&svg, "ring"), 2, "{svg}");
    assert!(
        svg.contains("212Mi, recommended: 8 of 8 kept the SLO, worst p99 17.8ms"),
        "{svg}"
    );
    assert!(
        svg.contains("<title>195Mi and less is too small</title>"),
        "{svg}"
    );
    // More memory is further right, slower is further up; what has no latency is at the edge.
    let kept = places(&svg, "kept the SLO, worst");
    assert!(kept.is_sorted_by(|a, b| a.0 < b.0), "{kept:?}");
    for other in [cheapest(), rates(), fixture::matrix()] {
        assert!(!loadline_report::render_html(&other).contains("<svg class=\"knee\""));
    }
    let knee = loadline_report::render_mail(&fixture::search());
    assert!(knee.contains("<svg class=\"knee\""), "it needs no script");
}

/// The class of the first drawing of the page, and how often it is there.
fn first(view: &ResultView) -> (String, usize) {
    let html = loadline_report::render_html(view);
    let (_, rest) = html.split_once("<svg class=\"").expect("a drawing");
    let class = rest.split_once('"').expect("it ends").0.to_owned();
    let (_, after) = html.split_once("</section>").expect("the verdict");
    let (head, _) = after.split_once("<section id=").expect("a section");
    assert!(head.contains("<svg "), "it stands before the sections");
    let times = html.matches(&format!("<svg class=\"{class}\"")).count();
    (class, times)
}

#[test]
fn every_kind_of_result_has_one_first_picture() {
    let of_starts = |view: ResultView| ResultView {
        slo: "start<60s".parse().expect("an SLO"),
        ..view
    };
    for (view, class) in [
        (fixture::search(), "knee"),
        (cheapest(), "price"),
        (fixture::matrix(), "matrix"),
        (of_starts(startup::caches()), "caches"),
        (of_starts(startup::limits()), "start-cpu"),
    ] {
        assert_eq!(first(&view), (class.to_owned(), 1));
    }
}

#[test]
fn a_matrix_has_a_line_for_each_set_of_options_over_the_memory() {
    let svg = drawing(&fixture::matrix(), "matrix");
    for name in [
        ">defaults<",
        ">-XX:TieredStopAtLevel=1<",
        ">-XX:+UseSerialGC<",
        ">600Mi<",
        // Killed before it answered.
        ">150Mi<",
    ] {
        assert!(svg.contains(name), "{name}: {svg}");
    }
    // More memory is further right.
    let places = places(&svg, "defaults, ");
    assert!(places.len() >= 2, "{svg}");
    assert!(places.is_sorted_by(|a, b| a.0 < b.0), "{places:?}");
    let mut hostile = fixture::matrix();
    for trial in &mut hostile.trials {
        trial.configuration.label = ATTACK.to_owned();
    }
    let svg = drawing(&hostile, "matrix");
    assert!(!svg.contains("<img") && !svg.contains("<script"), "{svg}");
}

#[test]
fn several_jdks_have_a_bar_each() {
    let mut view = fixture::search();
    let answer = view.recommendation.as_mut().expect("an answer");
    let own = LevelSize {
        jdk: Some("17".to_owned()),
        application: None,
        cpu: None,
        is_infeasible: false,
        configuration: Some(answer.configuration.clone()),
        confirmed: Some(answer.confirmed),
        proof: Some(answer.proof.clone()),
        why_none: None,
    };
    let none = LevelSize {
        jdk: Some(ATTACK.to_owned()),
        configuration: None,
        confirmed: None,
        proof: None,
        why_none: Some("1Gi fails too".to_owned()),
        ..own.clone()
    };
    answer.by_level = vec![own, none];
    // Its trials ran with several JDKs, so memory is not all that was varied.
    view.trials[0].configuration.jdk = Some("25".to_owned());
    assert_eq!(first(&view), ("levels".to_owned(), 1));
    let svg = drawing(&view, "levels");
    assert_eq!(svg.matches("<title>17: 212Mi</title>").count(), 1, "{svg}");
    assert!(svg.contains("no size keeps the SLO"), "{svg}");
    assert!(!svg.contains("<img") && !svg.contains("<script"), "{svg}");
}
