//! The judge, case by case: each verdict with the sentence a person reads.

use std::str::FromStr;

use loadline_sizing::{Bytes, Cpus};
use proptest::prelude::*;

use super::*;
use crate::fixture::{
    self, configuration, not_ready, passing_evidence, slo, steady_load, with_exit, with_output,
};
use crate::latency::{empty_histogram, encode_histogram};
use crate::record::{
    AppKo, CgroupEvidence, DependencyEvidence, DiskEvidence, GcEvidence, InvalidReason, JvmOption,
    LoadEvidence, MeasurementFailure, NoiseEvidence, PhaseSpan, ProxyEvidence, RequestEvidence,
    SqueezeEnd, SqueezeEvidence, TrialPhase, ValueProvenance,
};

fn judged(evidence: &Evidence) -> Judgement {
    judge_trial(
        &configuration(128),
        &slo(),
        evidence,
        &VerdictThresholds::default(),
    )
}

fn line(evidence: &Evidence) -> String {
    let judgement = judged(evidence);
    format!("{}: {}", judgement.verdict, judgement.reason)
}

fn lines(cases: &[Evidence]) -> String {
    cases.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn killed_by_the_kernel(mut evidence: Evidence) -> Evidence {
    evidence.cgroup.oom_kills = Some(1);
    evidence.cgroup.peak_memory = Some(Bytes::from_mib(128));
    with_exit(evidence, None, Some(9))
}

#[test]
fn a_sound_trial_passes() {
    insta::assert_snapshot!(line(&passing_evidence()), @"PASS: p99 20.0ms < 50ms, errors 0 % < 1 %, start time 3s < 20s, 300/s of 300/s offered");
    assert!(judged(&passing_evidence()).objectives.iter().all(|o| o.met));
}

#[test]
fn a_load_has_missed_before_its_trial_ends() {
    let load = MeasuredLoad::from_evidence(&passing_evidence());
    let load = load.unwrap().expect("it was measured");
    for (text, has_missed) in [
        ("p99<50ms", false),
        ("p99<15ms", true),
        ("max<1ms", true),
        // It is about the start.
        ("start<1ms", false),
    ] {
        let slo: Slo = text.parse().unwrap();
        assert_eq!(load_misses(&slo, &load), has_missed, "{text}");
    }
    let mut failed = load;
    failed.ok -= failed.ok / 10;
    assert!(load_misses(&slo(), &failed));
}

#[test]
fn a_peak_is_judged_by_its_own_objectives_and_the_load_without_it() {
    let peak = |p99: u64, failed| {
        let mut histogram = empty_histogram();
        histogram.record_n(p99 * 1_000_000, 6000 - failed).unwrap();
        LoadEvidence {
            phase: TrialPhase::Peak,
            offered_rate: Some(600.0),
            scheduled: 6000,
            ok: 6000 - failed,
            errors: [("timeout".to_owned(), failed)].into(),
            latency: encode_histogram(&histogram).unwrap(),
            ..steady_load()
        }
    };
    let judged = |slo: &str, p99, failed| {
        let mut evidence = passing_evidence();
        evidence.load.push(peak(p99, failed));
        let slo = slo.parse().unwrap();
        let thresholds = VerdictThresholds::default();
        let judgement = judge_trial(&configuration(128), &slo, &evidence, &thresholds);
        (judgement.verdict, judgement.reason.to_string())
    };
    let bounded = "p99<50ms,peak p99<500ms,peak errors<1%";
    for (slo, p99, failed, verdict, part) in [
        (
            "p99<50ms",
            812,
            30,
            TrialVerdict::Pass,
            "; at the peak of 600/s for 10s p99 81",
        ),
        (bounded, 400, 0, TrialVerdict::Pass, ", peak p99 40"),
        (bounded, 812, 0, TrialVerdict::SloMiss, "peak p99 was 81"),
        (
            bounded,
            400,
            120,
            TrialVerdict::SloMiss,
            "peak errors were 2 % (timeout 120), the SLO allows 1 %",
        ),
    ] {
        let (seen, reason) = judged(slo, p99, failed);
        assert_eq!(seen, verdict, "{reason}");
        assert!(reason.contains(part), "{reason}");
    }
    let without = judge_trial(
        &configuration(128),
        &bounded.parse().unwrap(),
        &passing_evidence(),
        &VerdictThresholds::default(),
    );
    assert_eq!(without.verdict, TrialVerdict::Pass, "a soak has none");
}

#[test]
fn an_objective_of_one_request_is_held_against_that_request() {
    let text = "POST /orders: p99<15ms, GET /gone: p99<1s, GET /owners: errors<1%, p99<50ms";
    let slo: Slo = text.parse().unwrap();
    let mut evidence = passing_evidence();
    let latency = evidence.load[0].latency.clone();
    let request = |name: &str, failed| RequestEvidence {
        name: name.to_owned(),
        ok: 3000,
        failed,
        unfinished: 0,
        latency: latency.clone(),
    };
    evidence.load[0].by_request = vec![request("POST /orders", 0), request("GET /owners", 60)];
    let judged = judge_trial(
        &configuration(240),
        &slo,
        &evidence,
        &VerdictThresholds::default(),
    );
    insta::assert_snapshot!(judged.reason, @"p99 of POST /orders was 20.0ms, the SLO allows 15ms; p99 of GET /gone has no value: no request was sent, the SLO allows 1s; errors of GET /owners were 1.96 % (60), the SLO allows 1 %");
    let told: Vec<_> = judged
        .objectives
        .iter()
        .map(|o| (o.objective_text(), o.met))
        .collect();
    insta::assert_snapshot!(format!("{told:?}"), @r#"[("p99<50ms", true), ("errors<1%", true), ("POST /orders: p99<15ms", false), ("GET /gone: p99<1s", false), ("GET /owners: errors<1%", false)]"#);
}

/// The ten out-of-memory cases; the texts are written after the JDK's sources, not captured.
#[test]
fn the_ten_out_of_memory_cases_are_told_apart() {
    let direct = "Exception in thread \"main\" java.lang.OutOfMemoryError: Cannot reserve 16777216 bytes of direct buffer memory (allocated: 16777216, limit: 16777216)";
    let threads = "Exception in thread \"main\" java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory or process/resource limits reached";
    let cases = [
        killed_by_the_kernel(passing_evidence()),
        killed_by_the_kernel(not_ready()),
        with_output(
            with_exit(passing_evidence(), Some(1), None),
            "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space",
        ),
        with_output(
            with_exit(passing_evidence(), Some(3), None),
            "Terminating due to java.lang.OutOfMemoryError: Java heap space",
        ),
        with_output(
            with_exit(passing_evidence(), None, Some(6)),
            "Aborting due to java.lang.OutOfMemoryError: Java heap space\n# A fatal error has been detected by the Java Runtime Environment:",
        ),
        with_output(with_exit(not_ready(), Some(1), None), direct),
        with_output(with_exit(passing_evidence(), Some(1), None), direct),
        with_output(with_exit(passing_evidence(), Some(1), None), threads),
        with_output(with_exit(not_ready(), Some(1), None), threads),
        with_output(
            passing_evidence(),
            "Exception in thread \"http-1\" java.lang.OutOfMemoryError: Java heap space",
        ),
    ];
    insta::assert_snapshot!(lines(&cases), @r#"
    APP_KO cgroup_oom: the kernel killed it at the memory limit of 128Mi (peak 128 MiB), in the measure phase
    APP_KO cgroup_oom: the kernel killed it at the memory limit of 128Mi (peak 128 MiB), before it was ready
    APP_KO java_oom: the JVM ran out of heap and ended with exit code 1, in the measure phase
    APP_KO java_oom: the JVM ran out of heap and ended with exit code 3, in the measure phase
    APP_KO java_oom: the JVM ran out of heap and ended with signal 6 SIGABRT, in the measure phase
    APP_KO java_oom: the JVM ran out of direct memory and ended with exit code 1, before it was ready
    APP_KO java_oom: the JVM ran out of direct memory and ended with exit code 1, in the measure phase
    APP_KO java_oom: the JVM ran out of threads and ended with exit code 1, in the measure phase
    APP_KO java_oom: the JVM ran out of threads and ended with exit code 1, before it was ready
    APP_KO java_oom: the JVM ran out of heap; the application kept running (`Exception in thread "http-1" java.lang.OutOfMemoryError: Java heap space`)
    "#);
}

#[test]
fn a_silent_exit_3_needs_the_option_to_count_as_out_of_memory() {
    let silent = with_exit(passing_evidence(), Some(3), None);
    assert_eq!(judged(&silent).verdict, TrialVerdict::AppKo(AppKo::Crash));
    let mut configuration = configuration(128);
    configuration.jvm_options.push(JvmOption {
        text: "-XX:+ExitOnOutOfMemoryError".to_owned(),
        provenance: ValueProvenance::User,
    });
    let judgement = judge_trial(
        &configuration,
        &slo(),
        &silent,
        &VerdictThresholds::default(),
    );
    assert_eq!(judgement.verdict, TrialVerdict::AppKo(AppKo::JavaOom));
}

#[test]
fn an_application_that_ends_or_stalls_is_ko_with_what_it_said() {
    let unknown_kill = {
        let mut evidence = with_exit(passing_evidence(), None, Some(9));
        evidence.cgroup.oom_kills = None;
        evidence
    };
    let full_and_unknown = Evidence {
        cgroup: CgroupEvidence {
            peak_memory: Some(Bytes::from_mib(127)),
            ..unknown_kill.cgroup.clone()
        },
        ..unknown_kill.clone()
    };
    let child = {
        let mut evidence = passing_evidence();
        evidence.cgroup.oom_kills = Some(2);
        evidence
    };
    let thrashing = {
        let mut evidence = not_ready();
        evidence.cgroup.file_refaults = Some(14_800_000);
        evidence.cgroup.major_faults = Some(12_000);
        evidence.start.throttled = Some(Duration::from_secs(35));
        evidence
    };
    let filled = {
        let mut evidence = with_exit(passing_evidence(), None, Some(9));
        evidence.disk = Some(DiskEvidence {
            written: Bytes::from_mib(63_488),
            left: Bytes::from_mib(1023),
        });
        evidence
    };
    let cases = [
        with_output(
            with_exit(not_ready(), Some(1), None),
            "Unrecognized VM option 'UseFastGC'\nError: Could not create the Java Virtual Machine.\nError: A fatal exception has occurred. Program will exit.",
        ),
        with_output(
            with_exit(not_ready(), Some(1), None),
            "Error occurred during initialization of VM\nInitial heap size set to a larger value than the maximum heap size",
        ),
        with_output(
            with_exit(not_ready(), Some(1), None),
            "Error occurred during initialization of VM\njava.lang.OutOfMemoryError: Java heap space",
        ),
        with_output(
            with_exit(not_ready(), Some(1), None),
            "Caused by: java.sql.SQLException: no database\n\tat Main.main(Main.java:3)",
        ),
        with_exit(passing_evidence(), Some(0), None),
        with_exit(passing_evidence(), Some(139), None),
        with_exit(passing_evidence(), None, Some(9)),
        unknown_kill,
        full_and_unknown,
        child,
        not_ready(),
        with_output(
            not_ready(),
            "PSQLException: Connection to localhost:5432 refused. Check that\n\tat Db.open(Db.java:3)\nRetrying in 5 s",
        ),
        with_output(
            with_exit(not_ready(), Some(1), None),
            "Caused by: java.net.UnknownHostException: db: Name or service not known\n\tat A.b(A.java:3)\njava.lang.RuntimeException: closed",
        ),
        with_output(not_ready(), "Connection pool of 10 opened"),
        thrashing,
        hanging(),
        filled,
    ];
    insta::assert_snapshot!(lines(&cases), @"
    APP_KO bad_flags: the JVM refused its options: `Unrecognized VM option 'UseFastGC'`
    APP_KO bad_flags: the JVM refused its options: `Initial heap size set to a larger value than the maximum heap size`
    APP_KO java_oom: the JVM ran out of heap and ended with exit code 1, before it was ready
    APP_KO crash: it ended with exit code 1, before it was ready; its output says `Caused by: java.sql.SQLException: no database`
    APP_KO crash: it ended with exit code 0, in the measure phase
    APP_KO crash: it ended with exit code 139 (signal 11 SIGSEGV), in the measure phase
    APP_KO crash: it ended with signal 9 SIGKILL, in the measure phase; the kernel's OOM counter did not move, so another process sent it
    APP_KO crash: it ended with signal 9 SIGKILL, in the measure phase; the kernel's OOM counter could not be read, so it may be that
    APP_KO cgroup_oom: it ended with signal 9 SIGKILL at the memory limit of 128Mi (peak 127 MiB), in the measure phase; the kernel's OOM counter was gone before it could be read again
    APP_KO cgroup_oom: the kernel killed one of its processes at the memory limit of 128Mi (peak 120 MiB), in the measure phase
    APP_KO never_ready: it was not ready within 60s; the last probe saw connection refused
    APP_KO never_ready: it was not ready within 60s; the last probe saw connection refused; its output says `PSQLException: Connection to localhost:5432 refused. Check that`: what it needs next to it is a [[dependency]], or a service of this machine with --network host
    APP_KO crash: it ended with exit code 1, before it was ready; its output says `Caused by: java.net.UnknownHostException: db: Name or service not known`: what it needs next to it is a [[dependency]], or a service of this machine with --network host
    APP_KO never_ready: it was not ready within 60s; the last probe saw connection refused
    APP_KO never_ready: it was not ready within 60s; the last probe saw connection refused; throttled for 35s meanwhile (summed over CPUs); thrash: the kernel kept dropping its code, 14.8 M pages were read again
    APP_KO hang: it stopped answering: no good response in the last 6 s of the measure phase, 1.80 k requests waiting (it was ready after 3s)
    APP_KO disk: it filled the disk: its files took 62Gi, 1023Mi were left, and it was ended in the measure phase
    ");
}

fn hanging() -> Evidence {
    let mut evidence = passing_evidence();
    for second in evidence.seconds.iter_mut().skip(4) {
        second.achieved = Some(0);
    }
    evidence.load[0].ok = 1200;
    evidence.load[0].unfinished = 1800;
    evidence.load[0].achieved_rate = 120.0;
    let mut histogram = empty_histogram();
    histogram.record_n(2_000_000, 1200).unwrap();
    evidence.load[0].latency = encode_histogram(&histogram).unwrap();
    evidence
}

#[test]
fn an_application_that_answers_errors_does_not_hang() {
    let mut evidence = hanging();
    evidence.load[0].unfinished = 0;
    evidence.load[0].errors = [("http_5xx".to_owned(), 1800)].into();
    for second in evidence.seconds.iter_mut().skip(4) {
        second.errors = Some(300);
    }
    insta::assert_snapshot!(line(&evidence), @"SLO_MISS: 1.80 k of 3 k requests failed (http_5xx 1.80 k): too many for p99<50ms; errors were 60 % (http_5xx 1.80 k), the SLO allows 1 %; it answered 120/s of the 300/s offered (40 %)");
}

#[test]
fn an_application_that_answers_errors_from_the_warm_up_on_does_not_hang() {
    let mut evidence = hanging();
    let measure = &mut evidence.load[0];
    (measure.ok, measure.unfinished) = (0, 0);
    measure.errors = [("grpc_not_found".to_owned(), 3000)].into();
    let mut warm_up = measure.clone();
    warm_up.phase = TrialPhase::WarmUp;
    warm_up.errors = [("grpc_not_found".to_owned(), 300)].into();
    let mut first = evidence.seconds[0].clone();
    first.at_ns = 0;
    evidence.seconds.insert(0, first);
    evidence.load.insert(0, warm_up);
    for second in &mut evidence.seconds {
        (second.achieved, second.errors) = (Some(0), Some(300));
    }
    assert_eq!(judged(&evidence).verdict, TrialVerdict::SloMiss);
}

#[test]
fn a_hang_behind_a_warm_up_of_errors_is_one() {
    let mut evidence = hanging();
    let mut warm_up = evidence.load[0].clone();
    (warm_up.phase, warm_up.ok) = (TrialPhase::WarmUp, 0);
    warm_up.errors = [("http_5xx".to_owned(), 3000)].into();
    evidence.load.insert(0, warm_up);
    for second in evidence.seconds.iter_mut().skip(4) {
        second.errors = Some(300);
    }
    let verdict = judged(&evidence).verdict;
    assert_eq!(verdict, TrialVerdict::AppKo(AppKo::Hang));
}

#[test]
fn a_missed_slo_says_by_how_much_and_why() {
    let mut slow = passing_evidence();
    let mut histogram = empty_histogram();
    histogram.record_n(2_000_000, 2900).unwrap();
    histogram.record_n(83_000_000, 100).unwrap();
    slow.load[0].latency = encode_histogram(&histogram).unwrap();
    slow.cgroup.file_refaults = Some(900_000);
    slow.cgroup.measure_nr_throttled = Some(80);
    slow.gc = Some(gc(Duration::from_millis(2400)));
    let mut late = passing_evidence();
    late.start.ready = Some(Duration::from_secs(25));
    let mut overloaded = passing_evidence();
    overloaded.load[0].achieved_rate = 250.0;
    let mut thrashing = passing_evidence();
    thrashing.gc = Some(gc(Duration::from_millis(3900)));
    insta::assert_snapshot!(lines(&[slow, late, overloaded, thrashing]), @"
    SLO_MISS: p99 was 83.0ms, the SLO allows 50ms; thrash: the kernel kept dropping its code, 900 k pages were read again; GC took 40 % of the CPU; throttled in 80 of 100 periods
    SLO_MISS: start time was 25s, the SLO allows 20s
    SLO_MISS: it answered 250/s of the 300/s offered (83.3 %)
    SLO_MISS: thrash: GC needed more than 50 % of the CPU; GC took 65 % of the CPU
    ");
}

/// Who accepts neighbours accepts what they do to the generator and the proxy, too, and no more.
#[test]
fn a_busy_machine_is_accepted_where_the_user_says_so() {
    let strict = VerdictThresholds::default();
    let accepting = VerdictThresholds::default().accepting_neighbours();
    let with = |evidence: &Evidence, thresholds| {
        judge_trial(&configuration(128), &slo(), evidence, thresholds).verdict
    };
    let mut noisy = passing_evidence();
    noisy.noise.foreign_cpu = Some(0.3);
    let mut saturated = passing_evidence();
    saturated.load[0].saturated = Some("it was late".to_owned());
    let mut behind_a_proxy = passing_evidence();
    behind_a_proxy.proxy = Some(ProxyEvidence {
        window: Some(Duration::from_secs(10)),
        cpu: Duration::from_millis(9500),
        ..ProxyEvidence::default()
    });
    let causes = [
        (noisy, InvalidReason::Noise),
        (saturated, InvalidReason::GeneratorSaturated),
        (behind_a_proxy, InvalidReason::ProxySaturated),
    ];
    for (evidence, cause) in causes {
        assert_eq!(with(&evidence, &strict), TrialVerdict::Invalid(cause));
        assert_eq!(with(&evidence, &accepting), TrialVerdict::Pass);
    }
    let mut late = passing_evidence();
    late.proxy = Some(ProxyEvidence {
        lag_p99: Duration::from_millis(6),
        ..ProxyEvidence::default()
    });
    let verdict = with(&late, &strict);
    assert_eq!(
        verdict,
        TrialVerdict::Invalid(InvalidReason::ProxySaturated)
    );
}

/// A share of exactly as much as is worth a word is not worth it yet.
#[test]
fn what_lies_behind_a_miss_is_more_than_its_threshold() {
    let of = |refaults: u64, gc_millis: u64, throttled: u64| {
        let mut evidence = passing_evidence();
        evidence.cgroup.file_refaults = Some(refaults);
        evidence.cgroup.measure_nr_throttled = Some(throttled);
        evidence.cgroup.measure_cpu = Some(Duration::from_secs(5));
        evidence.gc = Some(gc(Duration::from_millis(gc_millis)));
        causes_behind(&evidence, &VerdictThresholds::default())
    };
    assert_eq!(of(10_000, 1000, 10), Vec::<String>::new());
    let words = of(10_001, 1500, 11);
    assert_eq!(words.len(), 3, "{words:?}");
    assert_eq!(
        words[1..],
        ["GC took 30 % of the CPU", "throttled in 11 of 100 periods"]
    );
}

/// Requests under way at the end of the load are answered later; a queue is larger.
#[test]
fn a_slow_application_that_keeps_up_is_no_overload() {
    let slo: Slo = "p99<900ms,errors<1%".parse().unwrap();
    let judged = |millis: u64, scheduled: u64, answered_in_time: u64| {
        let mut evidence = passing_evidence();
        let mut histogram = empty_histogram();
        histogram.record_n(millis * 1_000_000, scheduled).unwrap();
        let load = &mut evidence.load[0];
        load.latency = encode_histogram(&histogram).unwrap();
        (load.scheduled, load.ok) = (scheduled, scheduled);
        load.offered_rate = Some(scheduled as f64 / 10.0);
        load.achieved_rate = answered_in_time as f64 / 10.0;
        judge_trial(
            &configuration(128),
            &slo,
            &evidence,
            &VerdictThresholds::default(),
        )
    };
    // 300/s for 10 s, half a second each: 150 are under way at the end.
    assert_eq!(judged(500, 3000, 2850).verdict, TrialVerdict::Pass);
    assert_eq!(judged(500, 3000, 2700).verdict, TrialVerdict::SloMiss);
    assert_eq!(judged(5, 3000, 2850).verdict, TrialVerdict::SloMiss);
    // One or two are more than 1 % of a slow rate.
    assert_eq!(judged(400, 30, 28).verdict, TrialVerdict::Pass);
    assert_eq!(judged(400, 30, 25).verdict, TrialVerdict::SloMiss);
    // However slow: a tenth of the load that is not answered is an overload.
    let loose: Slo = "errors<1%".parse().unwrap();
    let mut queue = passing_evidence();
    let mut histogram = empty_histogram();
    histogram.record_n(4_000_000_000, 3000).unwrap();
    queue.load[0].latency = encode_histogram(&histogram).unwrap();
    queue.load[0].achieved_rate = 200.0;
    let judgement = judge_trial(
        &configuration(128),
        &loose,
        &queue,
        &VerdictThresholds::default(),
    );
    assert_eq!(
        judgement.reason.to_string(),
        "it answered 200/s of the 300/s offered (66.7 %)"
    );
}

fn gc(measure_cpu: Duration) -> GcEvidence {
    GcEvidence {
        measure_gc_cpu: Some(measure_cpu),
        ..fixture::empty_gc_log()
    }
}

#[test]
fn what_cannot_count_is_invalid_and_says_so() {
    let mut failed = passing_evidence();
    failed.failure = Some(MeasurementFailure::new(
        InvalidReason::DiskFull,
        "writing samples.bin: no space left",
    ));
    let mut saturated = passing_evidence();
    saturated.load[0].saturated = Some("send lag above 1 ms in 4 of 10 seconds".to_owned());
    let mut lagging = passing_evidence();
    lagging.load[0].send_lag_p99 = Some(Duration::from_millis(7));
    let mut ports = passing_evidence();
    ports.load[0].errors = [("port_exhausted".to_owned(), 12)].into();
    let mut noisy = passing_evidence();
    noisy.noise.foreign_cpu = Some(0.3);
    let mut corrupt = passing_evidence();
    corrupt.load[0].latency = "?".to_owned();
    let mut unloaded = passing_evidence();
    unloaded.load.clear();
    let mut punctual = passing_evidence();
    punctual.load[0].send_lag_p99 = Some(Duration::from_millis(5));
    punctual.load[0].errors = [("port_exhausted".to_owned(), 0)].into();
    assert_eq!(judged(&punctual).verdict, TrialVerdict::Pass);
    insta::assert_snapshot!(lines(&[failed, saturated, lagging, ports, noisy, corrupt, unloaded]), @"
    INVALID disk_full: writing samples.bin: no space left
    INVALID generator_saturated: the load generator was the bottleneck: send lag above 1 ms in 4 of 10 seconds
    INVALID generator_saturated: the load generator was late: send lag p99 7ms, at most 5ms for this SLO
    INVALID port_exhausted: the generator ran out of ports or descriptors: port_exhausted 12 times
    INVALID noise: other programs used 30 % of the CPUs (at most 5 %)
    INVALID tool_error: the latency histogram of the record cannot be read: Invalid symbol 63, offset 0.
    INVALID tool_error: the application was ready, but no load was measured
    ");
}

/// A disturbance that was over before the load began made the start late, and nothing else.
#[test]
fn noise_of_the_start_counts_where_the_start_was_too_long_for_the_slo() {
    let mut disturbed = passing_evidence();
    disturbed.start.ready = Some(Duration::from_secs(30));
    disturbed.start_noise = Some(NoiseEvidence {
        foreign_cpu: Some(0.4),
        ..NoiseEvidence::default()
    });
    insta::assert_snapshot!(line(&disturbed), @"INVALID noise: while it started, other programs used 40 % of the CPUs (at most 5 %)");
    let other: Slo = "p99<50ms".parse().unwrap();
    let elsewhere = judge_trial(
        &configuration(128),
        &other,
        &disturbed,
        &VerdictThresholds::default(),
    );
    assert_eq!(elsewhere.verdict, TrialVerdict::Pass);
    // One that was in time all the same is in time, and a quiet one is what it was.
    disturbed.start.ready = Some(Duration::from_secs(15));
    assert_eq!(judged(&disturbed).verdict, TrialVerdict::Pass);
    disturbed.start.ready = Some(Duration::from_secs(30));
    disturbed.start_noise = Some(NoiseEvidence::default());
    insta::assert_snapshot!(line(&disturbed), @"SLO_MISS: start time was 30s, the SLO allows 20s");
}

#[test]
fn noise_excuses_waiting_but_never_a_kill() {
    let noisy = |mut evidence: Evidence| {
        evidence.noise.steal = Some(0.4);
        judged(&evidence).verdict
    };
    let noise = TrialVerdict::Invalid(InvalidReason::Noise);
    assert_eq!(noisy(not_ready()), noise);
    assert_eq!(noisy(hanging()), noise);
    assert_eq!(noisy(passing_evidence()), noise);
    let oom = TrialVerdict::AppKo(AppKo::CgroupOom);
    assert_eq!(noisy(killed_by_the_kernel(passing_evidence())), oom);
    let crash = TrialVerdict::AppKo(AppKo::Crash);
    assert_eq!(noisy(with_exit(passing_evidence(), Some(1), None)), crash);
}

#[test]
fn a_slo_that_allows_errors_allows_their_share_of_the_rate() {
    let mut evidence = passing_evidence();
    let mut histogram = empty_histogram();
    histogram.record_n(2_000_000, 2880).unwrap();
    evidence.load[0].latency = encode_histogram(&histogram).unwrap();
    evidence.load[0].ok = 2880;
    evidence.load[0].errors = [("http_5xx".to_owned(), 120)].into();
    evidence.load[0].achieved_rate = 288.0;
    let lenient: Slo = "p90<50ms,errors<5%".parse().unwrap();
    let judgement = judge_trial(
        &configuration(128),
        &lenient,
        &evidence,
        &VerdictThresholds::default(),
    );
    assert_eq!(
        judgement.verdict,
        TrialVerdict::Pass,
        "{}",
        judgement.reason
    );
}

proptest! {
    #[test]
    fn a_stricter_slo_never_turns_a_miss_into_a_pass(
        millis in prop::collection::vec(1_u64..200, 50..200),
        failed in 0_u64..4,
        bound in 5_u64..200,
        stricter in 1_u64..200,
    ) {
        let mut histogram = empty_histogram();
        for value in &millis { histogram.record(value * 1_000_000).unwrap(); }
        let mut part = steady_load();
        part.latency = encode_histogram(&histogram).unwrap();
        part.ok = millis.len() as u64;
        part.scheduled = part.ok + failed;
        part.unfinished = failed;
        part.offered_rate = None;
        let mut evidence = passing_evidence();
        evidence.load = vec![part];
        let verdict = |bound: u64| {
            let slo: Slo = format!("p90<{bound}ms,errors<5%").parse().unwrap();
            judge_trial(&configuration(128), &slo, &evidence, &VerdictThresholds::default()).verdict
        };
        if verdict(bound) == TrialVerdict::SloMiss {
            prop_assert_ne!(verdict(bound.saturating_sub(stricter).max(1)), TrialVerdict::Pass);
        }
    }
}

#[test]
fn what_a_dependency_may_have_caused_is_never_held_against_the_application() {
    let starved = |mut evidence: Evidence| {
        evidence.dependencies = vec![DependencyEvidence {
            name: "db".to_owned(),
            cpus: "1".to_owned(),
            cpu_count: 1,
            cpu_limit: Some(Cpus::from_millis(50)),
            window: Some(Duration::from_secs(10)),
            cpu: Some(Duration::from_millis(500)),
            nr_throttled: Some(80),
            ..DependencyEvidence::default()
        }];
        evidence
    };
    let slow = Slo::from_str("p99<1ms").unwrap();
    let miss = starved(passing_evidence());
    let judgement = judge_trial(
        &configuration(128),
        &slow,
        &miss,
        &VerdictThresholds::default(),
    );
    let cases = [
        format!("{}: {}", judgement.verdict, judgement.reason),
        line(&starved(passing_evidence())),
        line(&starved(not_ready())),
        line(&starved(with_exit(not_ready(), Some(1), None))),
        line(&starved(killed_by_the_kernel(passing_evidence()))),
    ];
    insta::assert_snapshot!(cases.join("\n"), @"
    INVALID dependency: the dependency db was at its limit: it was throttled in 80 % of the time's periods (limit 50m CPU), it used 100 % of what its limit of 50m CPU gives; so it is not known whose fault it was that p99 was 20.0ms, the SLO allows 1ms
    PASS: p99 20.0ms < 50ms, errors 0 % < 1 %, start time 3s < 20s, 300/s of 300/s offered; the dependency db was at its limit: it was throttled in 80 % of the time's periods (limit 50m CPU), it used 100 % of what its limit of 50m CPU gives
    INVALID dependency: the dependency db was at its limit: it was throttled in 80 % of the time's periods (limit 50m CPU), it used 100 % of what its limit of 50m CPU gives; so it is not known whose fault it was that it was not ready within 60s, the last probe saw connection refused
    INVALID dependency: the dependency db was at its limit: it was throttled in 80 % of the time's periods (limit 50m CPU), it used 100 % of what its limit of 50m CPU gives; so it is not known whose fault it was that it ended with exit code 1, before it was ready
    INVALID dependency: the dependency db was at its limit: it was throttled in 80 % of the time's periods (limit 50m CPU), it used 100 % of what its limit of 50m CPU gives; so it is not known whose fault it was that the kernel killed it at the memory limit of 128Mi (peak 128 MiB), in the measure phase
    ");
}

#[test]
fn an_outage_decides_where_everything_else_is_kept() {
    let told = |slo: &str| {
        let slo = slo.parse().unwrap();
        let evidence = outage::tests::trial(3);
        let judged = judge_trial(
            &configuration(240),
            &slo,
            &evidence,
            &VerdictThresholds::default(),
        );
        format!("{}: {}", judged.verdict, judged.reason)
    };
    let lines = [
        told("p90<50ms,errors<5%,recovers<4s"),
        told("p90<50ms,errors<5%,recovers<2s"),
        told("p90<5ms,errors<5%,recovers<4s"),
        told("p90<5ms,errors<5%,recovers<2s"),
    ];
    insta::assert_snapshot!(lines.join("\n"), @"
    PASS: p90 20.0ms < 50ms, errors 0 % < 5 %, 100/s of 300/s offered; it recovered within 3s (recovers<4s)
    SLO_MISS: it recovered within 3s (recovers<2s)
    SLO_MISS: p90 was 20.0ms, the SLO allows 5ms; it did not recover in the 15 s after the outage (recovers<4s)
    SLO_MISS: p90 was 20.0ms, the SLO allows 5ms; it did not recover in the 15 s after the outage (recovers<2s)
    ");
}

#[test]
fn a_trial_is_as_long_as_its_phases_and_at_least_a_second() {
    let of = |phases: &[(u64, u64)]| {
        let mut evidence = passing_evidence();
        let span = |(start, end)| PhaseSpan {
            phase: TrialPhase::Measure,
            start: start * 1_000_000_000,
            end: end * 1_000_000_000,
        };
        evidence.phases = phases.iter().copied().map(span).collect();
        let told = super::trial_seconds(&evidence);
        evidence.seconds.clear();
        (told, super::trial_seconds(&evidence))
    };
    assert_eq!(of(&[]), (10.0, 1.0), "reported seconds");
    assert_eq!(of(&[(5, 20), (20, 45)]), (40.0, 40.0));
}

/// Re-reads are counted up to the end of the judged load: a burst behind it must not thin them out.
#[test]
fn a_burst_behind_the_judged_load_hides_no_thrash() {
    let mut evidence = passing_evidence();
    let span = |phase, start: u64, end: u64| PhaseSpan {
        phase,
        start: start * 1_000_000_000,
        end: end * 1_000_000_000,
    };
    evidence.phases = vec![
        span(TrialPhase::Start, 0, 5),
        span(TrialPhase::Measure, 5, 20),
    ];
    evidence.seconds.clear();
    evidence.cgroup.file_refaults = Some(24_000);
    let thresholds = VerdictThresholds::default();
    assert!(super::is_thrash(&evidence, &thresholds));
    let burst = [
        span(TrialPhase::Age, 20, 35),
        span(TrialPhase::Again, 35, 39),
    ];
    evidence.phases.extend(burst);
    assert!(super::is_thrash(&evidence, &thresholds));
}

#[test]
fn exactly_as_much_as_is_allowed_breaks_no_rule() {
    let thresholds = VerdictThresholds {
        achieved_share: 0.5,
        gc_cpu_share: 0.5,
        ..VerdictThresholds::default()
    };
    let of = |achieved: f64, gc_millis: u64| {
        let mut evidence = passing_evidence();
        evidence.cgroup.measure_cpu = Some(Duration::from_secs(8));
        evidence.gc = Some(gc(Duration::from_millis(gc_millis)));
        let load = &mut evidence.load[0];
        load.latency = encode_histogram(&empty_histogram()).unwrap();
        load.duration = Duration::from_secs(8);
        load.offered_rate = Some(128.0);
        load.achieved_rate = achieved;
        let loads = JudgedLoads::from_evidence(&evidence).unwrap();
        let case = TrialCase {
            configuration: &configuration(128),
            slo: &slo(),
            evidence: &evidence,
            thresholds: &thresholds,
        };
        misses(case, &[], &loads).len()
    };
    // Half of the offered load, plus the requests that may be under way at the end.
    let least = 64.0 - UNDER_WAY / 8.0;
    assert_eq!(of(least, 4000), 0);
    assert_eq!(of(least - 0.01, 4000), 1);
    assert_eq!(of(least, 4001), 1);
}

/// What breaks because its limit was lowered on purpose is where the wall is, and no fault.
#[test]
fn a_kill_in_a_squeeze_leaves_the_verdict_of_what_was_judged_before() {
    let mut evidence = killed_by_the_kernel(fixture::passing_evidence());
    assert!(line(&evidence).starts_with("APP_KO cgroup_oom"));
    evidence.squeeze = Some(SqueezeEvidence {
        aged: None,
        burst_requests: 5000,
        steps: Vec::new(),
        end: SqueezeEnd::Killed,
        read_ahead: None,
        limit_after: None,
    });
    assert_eq!(judged(&evidence).verdict, TrialVerdict::Pass);
    // Killed again at the limit behind it: that one would not have held.
    evidence.squeeze.as_mut().unwrap().end = SqueezeEnd::Storm;
    assert_eq!(
        judged(&evidence).verdict,
        TrialVerdict::AppKo(AppKo::CgroupOom)
    );
}

#[test]
fn silence_behind_the_judged_load_of_a_study_is_no_hang() {
    let mut evidence = hanging();
    let end = evidence.seconds.iter().filter(|s| s.achieved > Some(0));
    let end = end.map(|s| s.at_ns).max().unwrap();
    let span = |phase, start, end| PhaseSpan { phase, start, end };
    evidence.phases = vec![
        span(TrialPhase::Measure, 0, end),
        span(TrialPhase::Age, end, end + 1),
    ];
    assert_ne!(judged(&evidence).verdict, TrialVerdict::AppKo(AppKo::Hang));
}

#[test]
fn a_load_command_passes_by_its_exit_code_alone() {
    let void = TrialVerdict::Invalid(InvalidReason::LoadCommand);
    for (load_exit, verdict, said) in [
        (Some(0), TrialVerdict::Pass, "the load passes, errors 0 %"),
        (
            Some(99),
            TrialVerdict::SloMiss,
            "exit code of the load command was 99, the SLO allows 0",
        ),
        (None, void, "did not end after the judged part"),
    ] {
        let evidence = Evidence {
            load_exit,
            ..passing_evidence()
        };
        let slo = "load passes unless 99".parse().unwrap();
        let of = configuration(128);
        let judgement = judge_trial(&of, &slo, &evidence, &VerdictThresholds::default());
        assert_eq!(judgement.verdict, verdict);
        assert!(judgement.reason.to_string().contains(said), "{said}");
    }
}
