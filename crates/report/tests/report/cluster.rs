//! What a report says of the cluster that trials ran in, and of how its nodes held limits.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use loadline_analysis::latency::Latency;
use loadline_analysis::record::{
    ClusterDescription, EnforcedLimits, GeneratorEvidence, LoadCommandEvidence, LoadFrom,
    ReportedEvidence, ReportedFigures, ReportedScope, TrialNode,
};
use loadline_analysis::slo::Quantile;
use loadline_report::compare::{compare, comparison_markdown};
use loadline_report::content::headline;
use loadline_report::{ResultView, render_brief, render_html, render_terminal};

use crate::fixture;

/// The search as pods, its trials on nodes of these names, each looked at.
fn on(nodes: &[&str], class: Option<&str>) -> ResultView {
    let enforced = |periods| {
        Some(EnforcedLimits {
            throttled_periods: Some(periods),
            memory_exit_code: 137,
        })
    };
    let mut view = fixture::search();
    view.machine.cluster = Some(ClusterDescription {
        context: "staging".to_owned(),
        namespace: "sizing".to_owned(),
        version: "v1.34.4".to_owned(),
        node: nodes[0].to_owned(),
        runtime: "containerd 1.6.20".to_owned(),
        runtime_class: class.map(str::to_owned),
        os: Some("Debian GNU/Linux 12 (bookworm)".to_owned()),
        enforced: enforced(2),
        slots: NonZeroU32::MIN,
        share_nodes: NonZeroU32::MIN,
        generators: None,
    });
    for (trial, name) in view.trials.iter_mut().zip(nodes.iter().cycle()) {
        trial.evidence.node = Some(TrialNode {
            enforced: enforced(if *name == nodes[0] { 2 } else { 1 }),
            ..TrialNode::from_machine(&view.machine, name)
        });
    }
    view
}

fn said(view: &ResultView) -> String {
    let details = headline(view).details;
    details.last().expect("it has some").clone()
}

#[test]
fn runtime_and_kind_of_the_nodes_are_said() {
    insta::assert_snapshot!(said(&on(&["n1"], None)), @"Measured by 22 trials in 32 min, 2026-11-20 13:27 UTC, as pods of the cluster staging (v1.34.4, containerd 1.6.20, Debian GNU/Linux 12 (bookworm)), node n1: on 2 CPUs of AMD EPYC 7B13, 8Gi, Linux 6.1.0-28-amd64 (Debian 12), cgroup hybrid; JDK 17 debian 17.0.13+11; loadline 0.1.0. Before the first trial, on its node, a container above its CPU limit was throttled (2 periods), and one above its memory limit was killed (exit code 137).");
    insta::assert_snapshot!(said(&on(&["n1", "n2", "n3"], Some("kata"))), @"Measured by 22 trials in 32 min, 2026-11-20 13:27 UTC, as pods of the cluster staging (v1.34.4, containerd 1.6.20, runtime class kata, Debian GNU/Linux 12 (bookworm)), nodes n1, n2, n3: on 2 CPUs of AMD EPYC 7B13, 8Gi, Linux 6.1.0-28-amd64 (Debian 12), cgroup hybrid; JDK 17 debian 17.0.13+11; loadline 0.1.0. Before the first trial, on each of 3 nodes, a container above its CPU limit was throttled (1 period), and one above its memory limit was killed (exit code 137).");
}

#[test]
fn how_limits_were_held_stands_in_every_format() {
    let view = on(&["n1"], None);
    for text in [
        render_terminal(&view, 400),
        render_brief(&view, 400),
        render_html(&view),
    ] {
        assert!(text.contains("was killed (exit code 137)"), "{text}");
    }
    assert!(!render_terminal(&fixture::search(), 400).contains("exit code 137"));
}

#[test]
fn trials_as_shipped_are_said_and_others_are_not() {
    let mut view = on(&["n1"], None);
    assert!(!said(&view).contains("as shipped"));
    view.trials[3].evidence.as_shipped = true;
    let said = said(&view);
    assert!(said.ends_with("1 trial ran as shipped, without the PID namespace that the containers of the others shared: its CPU, memory and throttling were not counted."), "{said}");
    for text in [
        render_terminal(&view, 400),
        render_brief(&view, 400),
        render_html(&view),
    ] {
        assert!(text.contains("ran as shipped"), "{text}");
    }
}

/// The same, with its load from two generators on these nodes.
fn from_generators(nodes: [&str; 2]) -> ResultView {
    let mut view = on(&["n1"], None);
    let of = |node: &str, micros| GeneratorEvidence {
        name: format!("loadline-generator-{node}"),
        node: node.to_owned(),
        scheduled: 1500,
        offset_ns: -7_000_000_000,
        offset_error: Duration::from_micros(micros),
        drift_ns: 12_000,
        send_lag_p99: Duration::from_micros(80),
        cpu: Duration::from_millis(90),
        saturated: None,
    };
    let generators = vec![of(nodes[0], 110), of(nodes[1], 240)];
    let loads = view.trials.iter_mut().flat_map(|t| &mut t.evidence.load);
    for load in loads {
        load.load_from = Some(LoadFrom::Generators {
            generators: generators.clone(),
        });
    }
    if let Some(cluster) = &mut view.machine.cluster {
        cluster.generators = NonZeroU32::new(2);
    }
    view
}

#[test]
fn where_the_load_came_from_is_said() {
    let last = |view: &ResultView| {
        let said = said(view);
        let at = said.find("The load ").expect("it is said");
        said[at..].to_owned()
    };
    insta::assert_snapshot!(last(&from_generators(["n8", "n9"])), @"The load of each trial came from 2 generator pods on n8, n9, none of them with a trial: 99 % of the requests of each left at most 80us late, and their clocks were known to 240us.");
    insta::assert_snapshot!(last(&from_generators(["n1", "n1"])), @"The load of each trial came from 2 generator pods on n1, also with trials, whose CPU they took: 99 % of the requests of each left at most 80us late, and their clocks were known to 240us.");
    let mut own = on(&["n1"], None);
    assert!(
        !said(&own).contains("The load "),
        "older records do not say it"
    );
    let loads = own.trials.iter_mut().flat_map(|t| &mut t.evidence.load);
    loads.for_each(|load| load.load_from = Some(LoadFrom::OwnPod));
    insta::assert_snapshot!(last(&own), @"The load came from loadline's container in the pod of each trial, over localhost.");
    let compared = comparison_markdown(&compare(&own, &from_generators(["n8", "n9"])));
    assert!(
        compared.contains("load from 2 generator pods"),
        "{compared}"
    );
}

#[test]
fn results_of_two_runtimes_are_told_apart() {
    let told = |other: &ResultView| {
        let text = comparison_markdown(&compare(&on(&["n1"], None), other));
        text.lines()
            .find(|line| line.contains("place of the trials"))
            .map(str::to_owned)
    };
    assert_eq!(told(&on(&["n2"], None)), None);
    insta::assert_snapshot!(told(&on(&["n1"], Some("kata"))).expect("it is said"), @"The place of the trials differs: pods by containerd 1.6.20 on Debian GNU/Linux 12 (bookworm); pods by containerd 1.6.20, runtime class kata on Debian GNU/Linux 12 (bookworm).");
    insta::assert_snapshot!(told(&fixture::search()).expect("it is said"), @"The place of the trials differs: pods by containerd 1.6.20 on Debian GNU/Linux 12 (bookworm); no pods.");
}

/// A load command while the service never stalled.
fn command_evidence() -> LoadCommandEvidence {
    let words = ["vegeta", "attack", "-rate={rate}"];
    LoadCommandEvidence {
        words: words.map(str::to_owned).to_vec(),
        connections: 4,
        stalled: Duration::ZERO,
        arrived_in_stalls: 0,
        expected_in_stalls: 0.0,
        front_lag_p99: Duration::from_micros(40),
        cpu_wait: None,
        reported: None,
    }
}

#[test]
fn a_load_command_is_named_and_whether_it_waits_is_said() {
    let waiting = |arrived: u64, expected: f64, cpu_wait: Option<Duration>| {
        let mut view = on(&["n1"], None);
        let command = LoadCommandEvidence {
            stalled: Duration::from_secs(2),
            arrived_in_stalls: arrived,
            expected_in_stalls: expected,
            cpu_wait,
            ..command_evidence()
        };
        view.trials.truncate(1);
        for load in view.trials.iter_mut().flat_map(|t| &mut t.evidence.load) {
            load.load_from = Some(LoadFrom::Command {
                command: Box::new(command.clone()),
            });
        }
        // A short screen leaves out the last details.
        headline(&view).details.swap_remove(0)
    };
    let with = |arrived, expected| waiting(arrived, expected, None);
    insta::assert_snapshot!(with(0, 1.0), @"The load was made by `vegeta attack -rate={rate}` and timed by loadline before the service; when it meant to send is not measured. The service did not stall, so it does not matter whether the command waits for answers.");
    insta::assert_snapshot!(with(3, 200.0), @"The load was made by `vegeta attack -rate={rate}` and timed by loadline before the service; when it meant to send is not measured. Its load is closed: while the service answered nothing (4s in all), 6 of 400 expected requests came, so these percentiles leave out most of what users would have waited.");
    insta::assert_snapshot!(with(195, 200.0), @"The load was made by `vegeta attack -rate={rate}` and timed by loadline before the service; when it meant to send is not measured. Its load is open: while the service answered nothing (4s in all), 390 of 400 expected requests came.");
    insta::assert_snapshot!(with(120, 200.0), @"The load was made by `vegeta attack -rate={rate}` and timed by loadline before the service; when it meant to send is not measured. Whether it waits for answers is not clear: while the service answered nothing (4s in all), 240 of 400 expected requests came.");
    // It had no CPU itself, so that its silence says nothing.
    let starved = waiting(60, 200.0, Some(Duration::from_secs(3)));
    assert!(starved.contains("is not clear: while"), "{starved}");
    let busy = waiting(3, 200.0, Some(Duration::from_secs(3)));
    assert!(busy.contains("is closed: while"), "{busy}");
}

#[test]
fn latencies_of_a_load_command_count_from_their_arrival() {
    let mut view = on(&["n1"], None);
    for load in view.trials.iter_mut().flat_map(|t| &mut t.evidence.load) {
        load.load_from = Some(LoadFrom::Command {
            command: Box::new(command_evidence()),
        });
    }
    let page = render_html(&view);
    assert!(page.contains("From its arrival before the service"));
    assert!(!page.contains("intended send time"));
}

#[test]
fn what_the_file_of_a_load_command_says_is_compared_with_what_was_seen() {
    let with = |scope: ReportedScope, more: u64, factor: f64| {
        let mut view = on(&["n1"], None);
        for load in view.trials.iter_mut().flat_map(|t| &mut t.evidence.load) {
            let latency = Latency::from_load(load).expect("a histogram");
            let p99 = Quantile::from_fraction(0.99).and_then(|p99| latency.quantile(p99));
            let all = ReportedFigures {
                requests: load.scheduled + more,
                p99: p99.map(|p99| p99.mul_f64(factor)),
                ..ReportedFigures::default()
            };
            let command = LoadCommandEvidence {
                reported: Some(ReportedEvidence {
                    format: "JMeter CSV".to_owned(),
                    scope,
                    all,
                    by_request: BTreeMap::new(),
                }),
                ..command_evidence()
            };
            load.load_from = Some(LoadFrom::Command {
                command: Box::new(command),
            });
        }
        let details = headline(&view).details;
        let said = details.iter().find(|said| said.contains("own results"));
        said.expect("it is said").clone()
    };
    insta::assert_snapshot!(with(ReportedScope::Rows, 0, 1.0), @"The load command's own results (JMeter CSV) agree with what loadline saw in 20 trials: requests within 1 %, p99 within 10 %.");
    insta::assert_snapshot!(with(ReportedScope::Rows, 1_000_000, 4.0), @"The load command's own results (JMeter CSV) differ from what loadline saw in 20 of 20 trials, as in trial 1: 1009000 requests where 9000 were seen, p99 68.3ms where 17.1ms was seen. What loadline saw was judged.");
    insta::assert_snapshot!(with(ReportedScope::ToolSummary, 0, 4.0), @"The load command's own results (JMeter CSV) cover its whole run, so they are not compared with the judged part.");
}
