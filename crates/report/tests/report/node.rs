//! The answer on a host with more CPUs: the text, and the pinned settings.

use loadline_analysis::recommend::LevelSize;
use loadline_report::content::headline;
use loadline_report::emit::{EmitPurpose, emit};
use loadline_report::{ResultView, TargetNode, node_sentences, render_terminal};
use loadline_sizing::{JvmOptionSet, OptionOrigin};

use crate::artefacts::{application, text};
use crate::fixture;

/// The search, for a host with 64 CPUs; the trials ran on one or two.
fn view(is_limited: bool, own: &[&str]) -> ResultView {
    let mut view = fixture::search();
    let own = own
        .iter()
        .map(|o| ((*o).to_owned(), OptionOrigin::CommandLine));
    view.node = Some(TargetNode {
        cpus: 64,
        options: JvmOptionSet::merge(own),
        has_arenas: false,
    });
    let recommendation = view.recommendation.as_mut().expect("an answer");
    let configurations = view.trials.iter_mut().map(|t| &mut t.configuration);
    for configuration in configurations.chain([&mut recommendation.configuration]) {
        if !is_limited {
            configuration.cpu = None;
            configuration
                .jvm_options
                .retain(|o| o.text != "-XX:+UseSerialGC");
        }
    }
    for trial in &mut view.trials {
        trial.evidence.cgroup.cpus = Some(if is_limited { 1 } else { 2 });
    }
    view
}

#[test]
fn a_cpu_limit_hides_the_host_but_not_from_malloc() {
    insta::assert_snapshot!(node_sentences(&view(true, &[])).join("\n"), @r"
    On a host with 64 CPUs the JVM chooses the same: its CPU limit of 1 hides the host, so it sees 1 processor.
    glibc's malloc may make 512 arenas there, whatever the limits, instead of 8: the emitted image and manifests set MALLOC_ARENA_MAX=8.
    ");
}

#[test]
fn without_a_limit_it_is_said_what_differs() {
    insta::assert_snapshot!(node_sentences(&view(false, &[])).join("\n"), @r"
    On a host with 64 CPUs the JVM sees 64 processors instead of 2, because it has no CPU limit: 18 compiler threads instead of 2, 63 threads of the common pool instead of 1. It was not measured so: the emitted files set -XX:ActiveProcessorCount=2.
    glibc's malloc may make 512 arenas there, whatever the limits, instead of 16: the emitted image and manifests set MALLOC_ARENA_MAX=16.
    ");
}

#[test]
fn the_files_pin_what_would_differ_and_nothing_else() {
    let files =
        |view: &ResultView| emit(view, &application(), &EmitPurpose::ALL).expect("an answer");
    let free = files(&view(false, &[]));
    for name in ["jvm.options", "loadline.profile", "java-tool-options.env"] {
        let text = text(&free, name);
        assert!(
            text.contains("-XX:ActiveProcessorCount=2"),
            "{name}\n{text}"
        );
    }
    let manifests = text(&free, "kubernetes.yaml");
    assert!(manifests.contains("MALLOC_ARENA_MAX"), "{manifests}");
    let limited = text(&files(&view(true, &[])), "jvm.options");
    assert!(!limited.contains("ActiveProcessorCount"), "{limited}");
    let mut plain = view(false, &[]);
    plain.node = None;
    let plain = text(&files(&plain), "jvm.options");
    assert!(
        !plain.contains("ActiveProcessorCount"),
        "only where it is asked for"
    );
    assert_eq!(node_sentences(&fixture::search()), Vec::<String>::new());
}

#[test]
fn what_the_command_pins_itself_is_not_pinned_again() {
    let pinned = view(false, &["-XX:ActiveProcessorCount=2"]);
    let said = node_sentences(&pinned);
    assert!(
        said[0].contains("chooses the same: its options decide"),
        "{said:?}"
    );
}

#[test]
fn the_answer_says_where_throttling_was_not_exercised() {
    let said = |cpus, node_cpus| {
        let mut view = view(true, &[]);
        for trial in &mut view.trials {
            trial.evidence.cgroup.cpus = Some(cpus);
        }
        if let Some(node) = &mut view.node {
            node.cpus = node_cpus;
        }
        let details = headline(&view).details;
        let found = details.into_iter().find(|d| d.contains("throttle"));
        found.unwrap_or_default()
    };
    insta::assert_snapshot!(said(1, 64), @"Throttling was not exercised: it ran on 1 CPU, no more than its quota (1 CPU). A host with more CPUs may throttle it.");
    assert_eq!(said(2, 64), "", "its quota of 1 CPU could throttle it here");
    assert_eq!(said(1, 1), "", "the node has no more CPUs either");
}

#[test]
fn each_jdk_has_its_size_and_its_proof() {
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
    let other = LevelSize {
        jdk: Some("25".to_owned()),
        application: None,
        cpu: None,
        is_infeasible: false,
        configuration: None,
        confirmed: None,
        proof: None,
        why_none: Some("1Gi fails too: p99 was 80ms, the SLO allows 50ms".to_owned()),
    };
    answer.by_level = vec![own.clone(), other];
    let section = |view: &ResultView, title: &str| {
        let text = render_terminal(view, 100);
        let begin = text.find(title).expect("its section");
        let lines: Vec<&str> = text[begin..].lines().skip(4).take(5).collect();
        lines.join("\n")
    };
    insta::assert_snapshot!(section(&view, "Which JDK"), @r"
    JDK  Size             Confirmed  Proof
    ───  ───────────────  ─────────  ────────────────────────────────────────────────
    17   1 CPU and 212Mi      197Mi  8 of 8 starts kept the SLO
    25   none                     –  1Gi fails too: p99 was 80ms, the SLO allows 50ms
    ");
    let sentence = headline(&view).sentence;
    assert!(
        sentence.contains("212Mi with -XX:+UseSerialGC and JDK 17: at 300 requests/s it kept "),
        "{sentence}"
    );
    let native = LevelSize {
        jdk: None,
        application: Some("native".to_owned()),
        ..own
    };
    let answer = view.recommendation.as_mut().expect("an answer");
    answer.by_level = vec![native];
    let applications = section(&view, "Which application needs how much?");
    assert!(applications.contains("\nnative "), "{applications}");
}

#[test]
fn each_cpu_limit_has_its_memory_and_the_knee_is_said() {
    let mut view = fixture::search();
    let answer = view.recommendation.clone().expect("an answer");
    let of = |cpu: &str, memory: Option<u64>| {
        let cpu: loadline_sizing::Cpus = cpu.parse().expect("CPUs");
        let mut configuration = answer.configuration.clone();
        configuration.cpu = Some(cpu);
        configuration.memory = memory.map(loadline_sizing::Bytes::from_mib);
        LevelSize {
            jdk: None,
            application: None,
            cpu: Some(cpu),
            confirmed: configuration.memory,
            proof: memory.map(|_| answer.proof.clone()),
            why_none: memory
                .is_none()
                .then(|| "1Gi fails too: p99 was 80ms".to_owned()),
            is_infeasible: memory.is_none(),
            configuration: memory.map(|_| configuration),
        }
    };
    let levels = vec![
        of("500m", None),
        of("1", Some(300)),
        of("2", Some(200)),
        of("4", Some(192)),
    ];
    let said = |levels: &[LevelSize]| {
        let mut view = fixture::search();
        let answer = view.recommendation.as_mut().expect("an answer");
        answer.by_level = levels.to_vec();
        let details = headline(&view).details;
        details.into_iter().find(|d| d.contains("knee"))
    };
    insta::assert_snapshot!(said(&levels).expect("it is said"), @r#"The knee is 1 CPU: the cheapest of these sizes, if one CPU costs as much as 9 GiB; with 500m CPU no size that was tried keeps the SLO."#);
    assert_eq!(said(&levels[..2]), None, "one limit has no knee");
    let answer = view.recommendation.as_mut().expect("an answer");
    answer.by_level = levels;
    let text = render_terminal(&view, 100);
    let begin = text.find("How much memory at which").expect("its section");
    insta::assert_snapshot!(text[begin..].lines().take(10).collect::<Vec<_>>().join("\n"), @"
    How much memory at which CPU limit?
    Each by its own search and its own fresh starts. The recommended one is the cheapest of those that
    passed their test. The knee is 1 CPU: the cheapest of these sizes, if one CPU costs as much as 9
    GiB; with 500m CPU no size that was tried keeps the SLO.

    CPU limit  Size              Confirmed  Proof
    ─────────  ────────────────  ─────────  ───────────────────────────
    500m CPU   none                      –  1Gi fails too: p99 was 80ms
    1 CPU      1 CPU and 300Mi       300Mi  8 of 8 starts kept the SLO
    2 CPU      2 CPUs and 200Mi      200Mi  8 of 8 starts kept the SLO
    ");
}
