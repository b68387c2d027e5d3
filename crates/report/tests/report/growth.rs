//! A soak: its verdict in the answer, its section and its drawing, bounded however long it was.

use loadline_analysis::record::{
    AppKo, MOST_POINTS, SoakEvidence, SoakLook, SoakPoint, TrialPhase, TrialPurpose, TrialRecord,
    TrialVerdict, ValueProvenance,
};
use loadline_report::content::headline;
use loadline_report::{ResultView, render_html, render_markdown, render_terminal};
use loadline_sizing::Bytes;

use crate::fixture::{self, Dice};

/// A soak of a day at 200 requests a second, with a malloc leak of this many bytes a request.
fn soak(lost: u64) -> SoakEvidence {
    let mut dice = Dice(7);
    let every = 86_400 / u64::from(MOST_POINTS);
    let mut soak = SoakEvidence::default();
    for n in 0..u64::from(MOST_POINTS) {
        let (second, requests) = (n * every, n * every * 200);
        let noise = (dice.unit() * 400_000.0) as u64;
        let is_second = n * 2 >= u64::from(MOST_POINTS);
        soak.points.push(SoakPoint {
            at_ns: second * 1_000_000_000,
            phase: if is_second {
                TrialPhase::Again
            } else {
                TrialPhase::Measure
            },
            requests,
            errors: 0,
            anon: Some(Bytes::from_bytes((120 << 20) + requests * lost + noise)),
            file: Some(Bytes::from_mib(20)),
            working_set: Some(Bytes::from_bytes((140 << 20) + requests * lost + noise)),
            heap_after: Some(Bytes::from_bytes((30 << 20) + noise)),
            heap_before: Some(Bytes::from_mib(50)),
            heap_committed: Some(Bytes::from_mib(64)),
            metaspace: Some(Bytes::from_mib(40)),
            threads: Some(30),
            descriptors: Some(80),
            sockets: Some(25),
        });
    }
    soak.looks = [0, 43_200, 86_370]
        .map(|second| look(second * 200, lost))
        .to_vec();
    soak
}

fn look(requests: u64, lost: u64) -> SoakLook {
    SoakLook {
        requests,
        live_heap: Some(Bytes::from_mib(30)),
        heap: Bytes::from_mib(50),
        direct: Some(Bytes::from_mib(4)),
        direct_buffers: None,
        stacks: Bytes::from_mib(3),
        metaspace: Bytes::from_mib(38),
        code_cache: Bytes::from_mib(12),
        jvm: Bytes::from_mib(9),
        malloc: Bytes::from_bytes((14 << 20) + requests * lost),
        threads: 34,
        malloc_trimmed: Some(Bytes::from_mib(14)),
        ..SoakLook::default()
    }
}

/// The search of the fixture with a soak of its answer.
fn soaked(lost: u64) -> ResultView {
    let mut view = fixture::search();
    let proof = view
        .trials
        .iter()
        .find(|t| t.purpose == TrialPurpose::Prove);
    let mut trial: TrialRecord = proof.expect("a proof").clone();
    trial.purpose = TrialPurpose::Soak;
    trial.id = "soak".to_owned();
    trial.evidence.soak = Some(soak(lost));
    view.trials.push(trial);
    view
}

fn alone(lost: u64) -> ResultView {
    let mut view = soaked(lost);
    view.trials.retain(|t| t.purpose == TrialPurpose::Soak);
    view.recommendation = None;
    view
}

fn section(view: &ResultView) -> String {
    let page = render_markdown(view);
    let begin = page.find("## What grows over time").expect("the section");
    let rest = &page[begin..];
    let end = rest.find("\n<details>").unwrap_or(rest.len());
    rest[..end].trim_end().to_owned()
}

#[test]
fn the_answer_says_on_what_it_rests() {
    let says = |lost| {
        let headline = headline(&soaked(lost));
        let (_, soak) = headline.sentence.split_once("warm-up. ").expect("its time");
        format!("{}: {soak}", headline.badge)
    };
    insta::assert_snapshot!(says(0), @"Proven: Soaked for 24.0 h.");
    insta::assert_snapshot!(says(2), @"Tested: Soaked for 24.0 h, and it grows: malloc.");
}

#[test]
fn growth_is_told_with_its_part_and_what_to_try() {
    insta::assert_snapshot!(section(&alone(2)), @r#"
    ## What grows over time

    Growing: malloc by 1.91Mi per million requests, the limit is full after 28.4 h.

    Anonymous memory: its soak needed 27.6 % more than in its first 20 s (153Mi after 24.0 h, 120Mi before).

    - malloc: try MALLOC\_ARENA\_MAX=2 in the environment, and -XX:TrimNativeHeapInterval=60000 (from JDK 17.0.9): soak each. On request, malloc gave back 70.2 % of what it held: much of it is not in use.

    | Look | Requests | Live heap | Heap | Direct | Stacks | Metaspace | Code | JVM | malloc | Threads |
    | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
    | before | 0 | 30Mi | 50Mi | 4Mi | 3Mi | 38Mi | 12Mi | 9Mi | 14Mi | 34 |
    | rest | 8640000 | 30Mi | 50Mi | 4Mi | 3Mi | 38Mi | 12Mi | 9Mi | 30.5Mi | 34 |
    | end | 17274000 | 30Mi | 50Mi | 4Mi | 3Mi | 38Mi | 12Mi | 9Mi | 46.9Mi | 34 |

    Resident memory by part, before the first cycle of the load, in the rest between the cycles and after the second. What grows in the first cycle only is kept, what grows as much in the second is lost.
    "#);
    let first = render_terminal(&alone(2), 2000);
    insta::assert_snapshot!(first.lines().next().unwrap_or_default(), @"spring-web with 1 CPU and 212Mi: growing: malloc by 1.91Mi per million requests, the limit is full after 28.4 h.");
    let first = render_terminal(&alone(0), 2000);
    insta::assert_snapshot!(first.lines().next().unwrap_or_default(), @"spring-web with 1 CPU and 212Mi: stable over 24.0 h and 17274000 requests: whatever grows unseen takes 113 days or more to fill its limit.");
}

#[test]
fn what_did_not_last_is_said_before_what_grew() {
    let killed = |mut view: ResultView| {
        let soak = view.trials.last_mut().expect("a soak");
        soak.verdict = TrialVerdict::AppKo(AppKo::CgroupOom);
        soak.reason = "the kernel killed it at the memory limit of 212Mi"
            .to_owned()
            .into();
        let text = render_terminal(&view, 2000);
        let is_tracked = |text: &str| text.contains("native memory tracking");
        assert!(!is_tracked(&text), "{text}");
        let soak = view.trials.last_mut().expect("a soak");
        let option = fixture::option(
            "-XX:NativeMemoryTracking=summary",
            ValueProvenance::Measured,
        );
        soak.configuration.jvm_options.push(option);
        assert!(is_tracked(&render_terminal(&view, 2000)), "an old soak");
        text
    };
    let first = killed(alone(0));
    insta::assert_snapshot!(first.lines().next().unwrap_or_default(), @"spring-web with 1 CPU and 212Mi did not last: after 24.0 h the kernel killed it at the memory limit of 212Mi.");
    let answer = killed(soaked(0));
    insta::assert_snapshot!(answer.lines().next().unwrap_or_default(), @"Do not give spring-web 1 CPU and 212Mi with -XX:+UseSerialGC. It did not last: soaked, it ended after 24.0 h: the kernel killed it at the memory limit of 212Mi.");
}

#[test]
fn a_day_is_drawn_with_as_many_points_as_a_screen_has() {
    let page = render_html(&alone(2));
    let begin = page.find("<svg class=\"growth\"").expect("the drawing");
    assert!(
        begin < page.find("<section id=\"growth\"").expect("a section"),
        "it comes first"
    );
    let drawing = &page[begin..];
    let drawing = &drawing[..drawing.find("</svg>").expect("a drawing")];
    assert!(drawing.contains("heap after collections"));
    assert!(drawing.len() < 120_000, "{}", drawing.len());
    assert!(page.len() < 2_000_000, "{}", page.len());
}
