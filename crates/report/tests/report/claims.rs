//! An answer with its heap and its budget: its wording, and that the shipped files agree.

use std::time::Duration;

use loadline_analysis::budget::LiveSetTrend;
use loadline_analysis::proof::Distance;
use loadline_analysis::record::{
    AppKo, SoakEvidence, SoakPoint, TrialPhase, TrialPurpose, TrialRecord, TrialVerdict,
};
use loadline_report::content::headline;
use loadline_report::emit::{
    Artefact, EmitError, EmitPurpose as For, EmittedWorkload, ProductionApplication, StartCommand,
    ValuePath, emit, patch, values,
};
use loadline_report::{
    ResultView, answer_doubts, render_brief, render_csv, render_junit, render_markdown,
    render_terminal,
};
use loadline_sizing::decision::{DecisionInput, LaunchDecision, decide_launch};
use loadline_sizing::limits::{ContainerLimits, Quota, SourcedValue, SystemCallFacts};
use loadline_sizing::profile::AppProfile;
use loadline_sizing::sight::PerceivedMachine;
use loadline_sizing::{Bytes, Cpus, JavaVersion, JdkRelease, JvmOptionSet};
use serde_json::json;

use crate::artefacts::{all, application, text};
use crate::drawings;
use crate::fixture::{self, HEAP};

/// The same with a live set that rises.
fn rising() -> ResultView {
    let mut view = fixture::budgeted();
    let answer = view.recommendation.as_mut().expect("there is one");
    answer.live_set_trend = Some(LiveSetTrend {
        per_minute: Bytes::from_kib(922),
        lasts: Some(Duration::from_secs(7300)),
    });
    view
}

fn soaked(minutes: u64, most: u64, verdict: TrialVerdict) -> ResultView {
    let mut view = fixture::budgeted();
    let proof = view
        .trials
        .iter()
        .find(|t| t.purpose == TrialPurpose::Prove);
    let mut trial: TrialRecord = proof.expect("a proof").clone();
    trial.purpose = TrialPurpose::Soak;
    trial.id = "soak".to_owned();
    trial.verdict = verdict;
    if verdict != TrialVerdict::Pass {
        let killed = "the kernel killed it at the memory limit of 212Mi";
        trial.reason = killed.to_owned().into();
    }
    let point = |second: u64| SoakPoint {
        at_ns: second * 1_000_000_000,
        phase: if second < minutes * 30 {
            TrialPhase::Measure
        } else {
            TrialPhase::Again
        },
        requests: second * 300,
        errors: 0,
        anon: Some(Bytes::from_mib(if second < minutes * 40 {
            160
        } else {
            most
        })),
        file: None,
        working_set: None,
        heap_after: Some(Bytes::from_mib(30)),
        heap_before: Some(Bytes::from_mib(50)),
        heap_committed: Some(Bytes::from_mib(64)),
        metaspace: Some(Bytes::from_mib(40)),
        threads: Some(30),
        descriptors: Some(80),
        sockets: Some(25),
    };
    trial.evidence.soak = Some(SoakEvidence {
        points: (0..=minutes * 6).map(|n| point(n * 10)).collect(),
        ..SoakEvidence::default()
    });
    view.trials.push(trial);
    view
}

fn section(page: &str, title: &str) -> String {
    let begin = page.find(title).expect("the section");
    let rest = &page[begin..];
    let end = rest[3..].find("\n### ").map_or(rest.len(), |end| end + 3);
    rest[..end].trim_end().to_owned()
}

#[test]
fn the_heap_stands_beside_the_size_and_the_budget_adds_up() {
    let view = fixture::budgeted();
    insta::assert_snapshot!(headline(&view).sentence, @"Give spring-web 1 CPU and 212Mi with -Xmx64m and -XX:+UseSerialGC: at 300 requests/s it kept p99<50ms, errors<0.1% and start<20s in 8 of 8 fresh starts, judged for 30 s after 10 s of warm-up. Not soaked.");
    let screen = render_brief(&view, 100);
    assert!(screen.lines().count() <= 27, "{screen}");
    let top: Vec<&str> = screen.lines().take(8).collect();
    insta::assert_snapshot!(top.join("\n"), @r"
    Give spring-web 1 CPU and 212Mi with -Xmx64m and -XX:+UseSerialGC: at 300 requests/s it kept
    p99<50ms, errors<0.1% and start<20s in 8 of 8 fresh starts, judged for 30 s after 10 s of warm-up.
    Not soaked.
    Under GET /owners?lastName=Da at 300/s (open model, 30 s), p99 was 16.3ms (15.9ms to 17.8ms).
    Budget: heap 64Mi, metaspace 61Mi + 3, code cache 14Mi + 6, thread stacks 5Mi + 12, malloc 18Mi + 4,
    GC and JVM 7Mi, kernel 2Mi, file pages in use 11Mi = 207Mi of 212Mi. 12 of 12 services lived for 61
    min on such a budget: at least 77 % of services do (95 % confidence).
    0 of 8 fresh starts of exactly this size failed; up to 1 in 3 could still (95 % confidence); --prove
    ");
    let budget = render_terminal(&view, 2000);
    let budget = budget.lines().find(|line| line.starts_with("Budget: "));
    insta::assert_snapshot!(budget.expect("the line"), @"Budget: heap 64Mi, metaspace 61Mi + 3, code cache 14Mi + 6, thread stacks 5Mi + 12, malloc 18Mi + 4, GC and JVM 7Mi, kernel 2Mi, file pages in use 11Mi = 207Mi of 212Mi. 12 of 12 services lived for 61 min on such a budget: at least 77 % of services do (95 % confidence).");
    insta::assert_snapshot!(section(&render_markdown(&view), "### What fills the 212Mi?"), @"
    ### What fills the 212Mi?

    Measured in a start that was aged with many requests. The heap is as large as it may become, the growth of the other parts is what they are still expected to take.

    | Part | Measured | Growth | Why it may grow | Capped by |
    | --- | ---: | ---: | --- | --- |
    | heap | 64Mi |  |  | `-Xmx64m` |
    | metaspace | 61Mi | + 3Mi | classes that load later |  |
    | code cache | 14Mi | + 6Mi | C1 alone: as much again | `-XX:ReservedCodeCacheSize=48m` |
    | thread stacks | 5Mi | + 12Mi | up to 200 threads | `server.tomcat.threads.max=200` |
    | malloc | 18Mi | + 4Mi | arenas that fill |  |
    | GC and JVM | 7Mi |  |  |  |
    | kernel | 2Mi |  |  |  |
    | file pages in use | 11Mi |  |  |  |
    | sum, growth included | 207Mi |  |  |  |
    | limit | 212Mi |  |  |  |
    | left over | 5Mi |  |  |  |
    ");
    let rows = render_csv(&view);
    assert!(rows.contains(",222298112,67108864,"), "{rows}");
    insta::assert_snapshot!(
        render_junit(&view).lines().find(|l| l.contains("system-out")).expect("the answer"),
        @"    <system-out>Give spring-web 1 CPU and 212Mi with -Xmx64m and -XX:+UseSerialGC: at 300 requests/s it kept p99&lt;50ms, errors&lt;0.1% and start&lt;20s in 8 of 8 fresh starts, judged for 30 s after 10 s of warm-up. Not soaked.</system-out>"
    );
}

#[test]
fn a_rising_live_set_is_said_wherever_the_answer_is() {
    let view = rising();
    let said = "The live set grows by 0.9 MiB a minute; -Xmx64m will last about 2 h.";
    insta::assert_snapshot!(headline(&view).details[0], @"The live set grows by 0.9 MiB a minute; -Xmx64m will last about 2 h. Bound what keeps the objects (caches, sessions, queues, stores in memory) and size it again, or soak it for as long as it has to last.");
    for page in [
        render_terminal(&view, 2000),
        render_brief(&view, 2000),
        render_junit(&view),
        render_markdown(&view),
    ] {
        assert!(page.replace('\\', "").contains(said), "{page}");
    }
    for artefact in all(&view, &application()).expect("there is one") {
        let text = artefact.text.replace("- -", "--");
        assert!(text.contains(said), "{text}");
    }
    let mut view = soaked(45, 160, TrialVerdict::Pass);
    assert_eq!(headline(&view).badge, "Proven");
    let trend = rising().recommendation.and_then(|r| r.live_set_trend);
    view.recommendation
        .as_mut()
        .expect("there is one")
        .live_set_trend = trend;
    assert_eq!(headline(&view).badge, "Tested", "it is never called proven");
}

#[test]
fn only_a_soak_that_lasted_within_its_budget_proves() {
    let killed = TrialVerdict::AppKo(AppKo::CgroupOom);
    let says = [
        fixture::budgeted(),
        soaked(12, 160, TrialVerdict::Pass),
        soaked(45, 160, TrialVerdict::Pass),
        soaked(45, 205, TrialVerdict::Pass),
        soaked(11, 160, killed),
    ]
    .map(|view| {
        let headline = headline(&view);
        let artefacts = all(&view, &application()).expect("there is one");
        let marks: Vec<bool> = artefacts
            .iter()
            .map(|a| a.text.contains("DO NOT SHIP"))
            .collect();
        let doubts = answer_doubts(&view);
        assert!(
            marks.iter().all(|mark| *mark != doubts.is_empty()),
            "{marks:?} {doubts:?}"
        );
        let options = text(&artefacts, "jvm.options");
        let claim = options
            .lines()
            .filter(|line| line.contains("Tested") || line.contains("Proven"));
        let claim: Vec<&str> = claim.collect();
        format!(
            "{}: {}\n{}",
            headline.badge,
            headline.sentence,
            claim.join("\n")
        )
    });
    insta::assert_snapshot!(says.join("\n\n"), @r"
    Tested: Give spring-web 1 CPU and 212Mi with -Xmx64m and -XX:+UseSerialGC: at 300 requests/s it kept p99<50ms, errors<0.1% and start<20s in 8 of 8 fresh starts, judged for 30 s after 10 s of warm-up. Not soaked.
    # Tested under GET /owners?lastName=Da at 300/s (open model, 30 s): it kept p99<50ms, errors<0.1% and start<20s in 8 of 8 fresh starts, judged for 30 s after 10 s of warm-up. Not soaked.

    Tested: Give spring-web 1 CPU and 212Mi with -Xmx64m and -XX:+UseSerialGC: at 300 requests/s it kept p99<50ms, errors<0.1% and start<20s in 8 of 8 fresh starts, judged for 30 s after 10 s of warm-up. Soaked for 12 min, too short to prove it.
    # Tested under GET /owners?lastName=Da at 300/s (open model, 30 s): it kept p99<50ms, errors<0.1% and start<20s in 8 of 8 fresh starts, judged for 30 s after 10 s of warm-up. Soaked for 12 min, too short to prove it.

    Proven: Give spring-web 1 CPU and 212Mi with -Xmx64m and -XX:+UseSerialGC: at 300 requests/s it kept p99<50ms, errors<0.1% and start<20s in 8 of 8 fresh starts, judged for 30 s after 10 s of warm-up. Soaked for 45 min within its budget.
    # Proven under GET /owners?lastName=Da at 300/s (open model, 30 s): it kept p99<50ms, errors<0.1% and start<20s in 8 of 8 fresh starts, judged for 30 s after 10 s of warm-up. Soaked for 45 min within its budget.

    Outgrew its budget: Do not give spring-web 1 CPU and 212Mi with -Xmx64m and -XX:+UseSerialGC. It outgrew its budget: soaked, it took up to 205Mi of anonymous memory, and the 199Mi of its budget were passed after 30 min.
    # Tested under GET /owners?lastName=Da at 300/s (open model, 30 s): it kept p99<50ms, errors<0.1% and start<20s in 8 of 8 fresh starts, judged for 30 s after 10 s of warm-up. It outgrew its budget: soaked, it took up to 205Mi of anonymous memory, and the 199Mi of its budget were passed after 30 min.

    Did not last: Do not give spring-web 1 CPU and 212Mi with -Xmx64m and -XX:+UseSerialGC. It did not last: soaked, it ended after 11 min: the kernel killed it at the memory limit of 212Mi.
    # Tested under GET /owners?lastName=Da at 300/s (open model, 30 s): it kept p99<50ms, errors<0.1% and start<20s in 8 of 8 fresh starts, judged for 30 s after 10 s of warm-up. It did not last: soaked, it ended after 11 min: the kernel killed it at the memory limit of 212Mi.
    ");
}

#[test]
fn a_short_soak_takes_back_nothing_that_others_of_the_same_answer_showed() {
    let killed = TrialVerdict::AppKo(AppKo::CgroupOom);
    let lasted = soaked(45, 160, TrialVerdict::Pass);
    let badges = [
        [
            &soaked(11, 160, killed),
            &soaked(12, 160, TrialVerdict::Pass),
        ],
        [&soaked(11, 160, killed), &lasted],
        [&lasted, &soaked(12, 160, TrialVerdict::Pass)],
        [&soaked(45, 160, TrialVerdict::SloMiss), &lasted],
    ]
    .map(|[first, second]| {
        let mut view = first.clone();
        view.trials.extend(second.trials.last().cloned());
        headline(&view).badge
    });
    assert_eq!(badges, ["Did not last", "Did not last", "Proven", "Proven"]);
    // It may have run days later, in another result.
    let mut view = lasted.clone();
    let soak = view.trials.last_mut().expect("the soak");
    soak.result = "another".to_owned();
    soak.started_at_unix_ms += 1_000_000_000;
    assert_eq!(view.elapsed(), fixture::budgeted().elapsed());
}

#[test]
fn a_cheapest_deployment_says_that_it_has_no_heap_and_no_budget() {
    let said = "No heap is fixed, and no budget adds up the parts of this memory. Before it ships, size one replica without prices: `loadline size";
    let mut view = drawings::cheapest();
    let details = headline(&view).details.join("\n");
    insta::assert_snapshot!(details.lines().find(|d| d.starts_with(said)).expect("it is said"), @"No heap is fixed, and no budget adds up the parts of this memory. Before it ships, size one replica without prices: `loadline size --cpu 1 --max-memory 212Mi --rate 450/s`.");
    for artefact in all(&view, &application()).expect("there is one") {
        let text = artefact.text.replace("- -", "--").replace('\\', "");
        assert!(text.contains(said), "{}: {text}", artefact.name);
    }
    view.recommendation
        .as_mut()
        .expect("there is one")
        .deployment = None;
    for view in [view, fixture::budgeted()] {
        let details = headline(&view).details.join("\n");
        assert!(!details.contains("No heap is fixed"), "{details}");
    }
}

#[test]
fn the_first_second_is_told_where_it_breaks_the_slo() {
    let mut view = fixture::budgeted();
    for trial in &mut view.trials {
        let phases = &trial.evidence.phases;
        let Some(ready) = phases.iter().find(|p| p.phase == TrialPhase::Start) else {
            continue;
        };
        let ready = ready.end;
        let mut seconds = trial.evidence.seconds.iter_mut();
        if let Some(first) = seconds.find(|s| s.at_ns > ready) {
            first.p50 = Some(Duration::from_millis(474));
            first.p99 = Some(Duration::from_millis(812));
        }
    }
    let details = headline(&view).details;
    let said = details.iter().find(|d| d.contains("first second"));
    insta::assert_snapshot!(said.expect("it is told"), @"In the first second after start, which is not judged, p50 was 474ms and p99 812ms.");
    for artefact in every_form(&view) {
        let text = artefact.text.replace("- -", "--");
        assert!(text.contains("p50 was 474ms"), "{}: {text}", artefact.name);
    }
    let details = headline(&fixture::budgeted()).details;
    assert!(
        !details.iter().any(|d| d.contains("first second")),
        "{details:?}"
    );
}

/// Every form of every file, with the launcher in the image.
fn every_form(view: &ResultView) -> Vec<Artefact> {
    let launcher = ProductionApplication {
        launcher: true,
        ..application()
    };
    let words = ["build/wlp/bin/server", "run", "orders"].map(str::to_owned);
    let liberty = ProductionApplication {
        command: StartCommand::read(&words).expect("it is the start script"),
        ..application()
    };
    let container = json!({"name": "app", "ports": [{"containerPort": 8080}]});
    let workload = EmittedWorkload {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        name: "orders".to_owned(),
        namespace: None,
        container,
    };
    let places = ["resources=resources", "java-options=javaOptions"];
    let places: Vec<ValuePath> = places
        .iter()
        .map(|p| ValuePath::from_assignment(p).expect("a place"))
        .collect();
    let chart = json!({"resources": {}, "javaOptions": ""});
    let mut files = all(view, &launcher).expect("a recommendation");
    files.extend(emit(view, &application(), &[For::Kubernetes]).expect("a recommendation"));
    files.extend(all(view, &liberty).expect("a recommendation"));
    files.extend(
        patch(view, &application(), &workload)
            .expect("it fits")
            .artefacts,
    );
    files.extend(
        values(view, &application(), &chart, &places)
            .expect("it fits")
            .artefacts,
    );
    files
}

#[test]
fn every_emitted_form_has_the_heap_its_load_and_its_time() {
    let view = fixture::budgeted();
    for artefact in every_form(&view) {
        let (name, text) = (artefact.name, artefact.text.replace("- -", "--"));
        for said in [
            "at 300/s",
            "judged for 30 s after 10 s of warm-up",
            "Not soaked.",
        ] {
            assert!(text.contains(said), "{name}: {said}\n{text}");
        }
        assert!(!text.contains("Keeps"), "{name}\n{text}");
        // These copy or start what holds the options.
        let has_options = ![
            "Dockerfile",
            "compose.yaml",
            "loadline.xml",
            "kustomization.yaml",
        ]
        .contains(&name);
        for option in HEAP.iter().filter(|_| has_options) {
            assert!(text.contains(option), "{name}: {option}\n{text}");
        }
    }
}

#[test]
fn what_is_over_committed_is_not_emitted() {
    let mut given = application();
    given.command.options = vec!["-Xmx128m".to_owned()];
    let error = all(&fixture::budgeted(), &given).expect_err("it does not fit");
    insta::assert_snapshot!(format!("{error}\nhint: {}", error.emit_hint()), @"
    the size is over-committed: the heap may take 128Mi and everything else 143Mi: 271Mi in a limit of 212Mi
    hint: lower the heap to 69Mi (-Xmx69m) or raise the limit to 271Mi; an -Xmx in the command wins over the measured one: take it out, or size with --heap keep
    ");
    assert!(matches!(error, EmitError::OverCommitted(_)));
    let mut small = fixture::budgeted();
    let answer = small.recommendation.as_mut().expect("there is one");
    answer.configuration.memory = Some(Bytes::from_mib(200));
    assert!(
        all(&small, &application()).is_err(),
        "64 + 142.3 MiB in 200"
    );
}

/// What the launcher decides in a container of the answer's size.
fn launched(options: &[&str], profile: &str, memory: u64) -> LaunchDecision {
    let limits = ContainerLimits {
        host: SystemCallFacts {
            memory: Bytes::from_gib(8),
            affinity: 1,
            address_space: None,
            processes: None,
        },
        memory: Some(SourcedValue::new(Bytes::from_mib(memory), "memory.max")),
        memory_high: None,
        swap: None,
        quota: Some(SourcedValue::new(
            Quota {
                quota_us: 100_000,
                period_us: 100_000,
            },
            "cpu.max",
        )),
        shares: None,
        weight: None,
        cpuset: None,
        pids: None,
        notes: Vec::new(),
    };
    let sight = PerceivedMachine {
        memory: Bytes::from_mib(memory),
        cpus: Cpus::from_whole(1).ceil(),
        blindness: Vec::new(),
    };
    let options = JvmOptionSet::from_words(options.iter().copied());
    let profile = AppProfile::parse_profile(profile);
    assert!(profile.notes.is_empty(), "{:?}", profile.notes);
    decide_launch(&DecisionInput {
        jdk: JdkRelease::for_hotspot(JavaVersion::from_feature(17)),
        limits: &limits,
        sight: &sight,
        options: &options,
        profile: Some(&profile),
    })
}

#[test]
fn the_launcher_and_the_files_agree_on_the_heap() {
    let files = all(&fixture::budgeted(), &application()).expect("a recommendation");
    let profile = text(&files, "loadline.profile");
    let options = text(&files, "jvm.options");
    let options: Vec<&str> = options.lines().filter(|l| l.starts_with('-')).collect();
    let heap = Some(Bytes::from_mib(64));
    let in_image = launched(&options, &profile, 212);
    assert_eq!((in_image.heap, in_image.minimum), (heap, None));
    assert!(in_image.warnings.is_empty(), "{:?}", in_image.warnings);
    let added = in_image.options.iter().map(|c| c.option.as_str());
    assert!(
        !added.clone().any(|o| o.starts_with("-Xm")),
        "{:?}",
        in_image.options
    );
    // Without the options in the image the launcher adds the same.
    let alone = launched(&[], &profile, 212);
    assert_eq!((alone.heap, alone.minimum), (heap, None));
    for option in HEAP {
        assert!(
            alone.options.iter().any(|c| c.option == option),
            "{option}: {:?}",
            alone.options
        );
    }
    let small = launched(&options, &profile, 200);
    insta::assert_snapshot!(small.warnings.join("\n"), @"over-committed: the heap may take 64Mi and everything else 143Mi: 207Mi in a limit of 200Mi, as measured; lower the heap to 57Mi (-Xmx57m) or raise the limit to 207Mi");
    assert_eq!(small.minimum, Some(Bytes::from_mib(207)));
}

#[test]
fn few_starts_far_from_every_bound_say_which_is_nearest() {
    let with = |starts: u64, disturbed: usize| {
        let mut view = fixture::budgeted();
        let all = view.trials.iter_mut();
        let proofs = all.filter(|t| t.purpose == TrialPurpose::Prove);
        for start in proofs.take(disturbed) {
            start.evidence.noise.foreign_cpu = Some(0.6);
        }
        let mut left = starts;
        view.trials.retain(|t| {
            let is_left = t.purpose != TrialPurpose::Prove || left > 0;
            left -= u64::from(t.purpose == TrialPurpose::Prove && is_left);
            is_left
        });
        let proof = &mut view.recommendation.as_mut().expect("there is one").proof;
        (proof.starts, proof.passes) = (starts, starts);
        proof.distances = [("p99<50ms", 31.0), ("memory", 9.26)]
            .map(|(of, deviations)| Distance {
                of: of.to_owned(),
                deviations,
                enough: 3,
            })
            .into();
        headline(&view).details.join("\n")
    };
    let said = with(3, 0);
    let sentence = "3 fresh starts kept it. The nearest bound is memory, 9.3 standard deviations away: at least 89 % of such starts stay below it (95 % confidence, starts correlated by 0.5). `--prove 60` counts starts instead.";
    assert!(said.contains(sentence), "{said}");
    let disturbed = with(8, 6);
    let sentence = "starts correlated by 0.5). How far latency stays from its bound is not known: other programs disturbed 6 of 8 starts, and it takes 3 quiet ones; size again when the machine is quiet. `--prove 60`";
    assert!(disturbed.contains(sentence), "{disturbed}");
    assert!(!with(8, 5).contains("How far latency"), "three are enough");
    let counted = with(20, 0);
    assert!(!counted.contains("standard deviations"), "{counted}");
    assert!(counted.contains("0 of 20 fresh starts"), "{counted}");
}

#[test]
fn the_table_has_the_limit_at_which_the_squeezed_start_broke() {
    let mut view = fixture::budgeted();
    let recommendation = view.recommendation.as_mut().expect("there is one");
    let next = recommendation.next_smaller.as_mut().expect("there is one");
    next.memory = Bytes::from_mib(199);
    let text = render_terminal(&view, 100);
    let rows: Vec<&str> = text.lines().map(str::trim_start).collect();
    let own = rows
        .iter()
        .position(|row| row.starts_with("199Mi  "))
        .expect(&text);
    assert!(rows[own].contains("too small "), "{text}");
    assert!(rows[own - 1].contains("recommended"), "{text}");
}

#[test]
fn bursts_of_fresh_starts_show_the_room_above_the_judged_load() {
    let mut view = fixture::budgeted();
    for trial in &mut view.trials {
        let loads = &mut trial.evidence.load;
        let judged = loads
            .iter()
            .find(|load| load.phase == TrialPhase::Measure)
            .filter(|_| trial.purpose == TrialPurpose::Prove);
        let Some(judged) = judged.cloned() else {
            continue;
        };
        loads.push(loadline_analysis::record::LoadEvidence {
            phase: TrialPhase::Age,
            offered_rate: None,
            achieved_rate: 12.5 * judged.achieved_rate,
            ..judged
        });
    }
    let shown = render_terminal(&view, 1000);
    let begin = shown.find("In bursts at full speed").expect("it is said");
    let sentence = shown[begin..].lines().next().expect("a line");
    assert!(
        sentence.contains(", 12.5 times the judged rate: p99 "),
        "{sentence}"
    );
}
