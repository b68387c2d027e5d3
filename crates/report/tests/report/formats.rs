//! Every format of an ordinary result, and that its parts agree.

use std::time::Duration;

use loadline_analysis::record::{
    InvalidReason, PhaseSpan, SecondEvidence, TrialPhase, TrialVerdict,
};
use loadline_report::content::headline;
use loadline_sizing::Bytes;

use crate::{drawings, fixture};

#[test]
fn the_first_screen_of_a_search() {
    let screen = loadline_report::render_brief(&fixture::search(), 100);
    // With three lines on what to do next: 30.
    assert!(screen.lines().count() <= 27, "{screen}");
    let longest = screen.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(100), "{screen}");
    insta::assert_snapshot!(screen, @r"
    Give spring-web 1 CPU and 212Mi with -XX:+UseSerialGC: at 300 requests/s it kept p99<50ms,
    errors<0.1% and start<20s in 8 of 8 fresh starts, judged for 30 s after 10 s of warm-up. Not soaked.
    Under GET /owners?lastName=Da at 300/s (open model, 30 s), p99 was 16.3ms (15.9ms to 17.8ms).
    197Mi is the smallest memory that kept the SLO in every confirmation; 8 % more is for starts that
    differ and for growth.
    0 of 8 fresh starts of exactly this size failed; up to 1 in 3 could still (95 % confidence); --prove
    60 narrows that to 1 in 20.
    195Mi is too small (trial 22): p99<50ms was measured as 109 ms; garbage collection stopped it 33 %
    of the time.
    This answers for fresh starts, judged right after the warm-up asked for, as after a deployment
    (--question start).
    Measured by 22 trials in 32 min, 2026-11-20 13:27 UTC, on 2 CPUs of AMD EPYC 7B13, 8Gi, Linux
    6.1.0-28-amd64 (Debian 12), cgroup hybrid; JDK 17 debian 17.0.13+11; loadline 0.1.0.

    Which sizes keep the SLO?
    Memory  Verdict            Kept the SLO  Worst p99  Start  Peak memory  What happened
    ──────  ─────────────────  ────────────  ─────────  ─────  ───────────  ────────────────────────────
       1Gi  PASS                     1 of 1     17.1ms  5.39s        201Mi  kept the SLO
     256Mi  PASS                     1 of 1     16.9ms  5.40s        201Mi  kept the SLO
     215Mi  PASS                     1 of 1     17.1ms  5.43s        201Mi  kept the SLO
     212Mi  PASS, recommended        8 of 8     17.8ms  5.38s        201Mi  kept the SLO
     197Mi  PASS                     6 of 6     16.5ms  5.38s        197Mi  kept the SLO
     195Mi  SLO MISS                 0 of 1      109ms  5.24s        195Mi  p99<50ms was measured as 10…
     189Mi  SLO MISS                 0 of 1      128ms  5.42s        189Mi  p99<50ms was measured as 12…
     181Mi  SLO MISS                 0 of 1      152ms  5.37s        181Mi  p99<50ms was measured as 15…
    and 1 more
    Left out of every figure above, because they say nothing about the application: 1 of 22 trials.
    ");
}

#[test]
fn a_search_in_the_terminal() {
    insta::assert_snapshot!(loadline_report::render_terminal(&fixture::search(), 100), @r"
    Give spring-web 1 CPU and 212Mi with -XX:+UseSerialGC: at 300 requests/s it kept p99<50ms,
    errors<0.1% and start<20s in 8 of 8 fresh starts, judged for 30 s after 10 s of warm-up. Not soaked.
    Under GET /owners?lastName=Da at 300/s (open model, 30 s), p99 was 16.3ms (15.9ms to 17.8ms).
    197Mi is the smallest memory that kept the SLO in every confirmation; 8 % more is for starts that
    differ and for growth.
    0 of 8 fresh starts of exactly this size failed; up to 1 in 3 could still (95 % confidence); --prove
    60 narrows that to 1 in 20.
    195Mi is too small (trial 22): p99<50ms was measured as 109 ms; garbage collection stopped it 33 %
    of the time.
    This answers for fresh starts, judged right after the warm-up asked for, as after a deployment
    (--question start).
    Measured by 22 trials in 32 min, 2026-11-20 13:27 UTC, on 2 CPUs of AMD EPYC 7B13, 8Gi, Linux
    6.1.0-28-amd64 (Debian 12), cgroup hybrid; JDK 17 debian 17.0.13+11; loadline 0.1.0.

    Does it keep the SLO, and why not 195Mi?
    Median over the trials, the extremes in brackets. An objective is met when the worst trial met it.

    Objective                        212Mi  Met             195Mi  Met
    ───────────  ─────────────────────────  ───────────  ────────  ───────────
    p99<50ms     16.3ms (15.9ms to 17.8ms)  yes, 8 of 8     109ms  no, 0 of 1
    errors<0.1%                        0 %  yes, 8 of 8  0.0556 %  yes, 1 of 1
    start<20s       5.38s (5.23s to 5.50s)  yes, 8 of 8     5.24s  yes, 1 of 1

    Figure                                                212Mi     195Mi
    ────────────────────────────────  ─────────────────────────  ────────
    Start time, exec to ready            5.38s (5.23s to 5.50s)     5.24s
    Achieved rate                                         300/s     300/s
    Failed requests                                         0 %  0.0556 %
    CPUs used                               0.44 (0.44 to 0.45)      0.80
    CFS periods throttled                                1.33 %      30 %
    Longest GC pause                  8.88ms (8.37ms to 8.98ms)     197ms
    Time stopped by GC                1.34 % (1.29 % to 1.41 %)    32.7 %
    Heap after GC, largest                                 47Mi      47Mi
    Peak memory, page cache included                      201Mi     195Mi
    Peak working set                                      189Mi     183Mi
    Peak anonymous memory                                 157Mi     157Mi

    Which sizes keep the SLO?
    All with 1 CPU, -XX:+UseSerialGC.
    A request without a good answer counts as slower than every other; when there are too many, p99 is
    one of them (in failures).

    Memory  Verdict            Kept the SLO  Worst p99  Start  Peak memory  What happened
    ──────  ─────────────────  ────────────  ─────────  ─────  ───────────  ────────────────────────────
       1Gi  PASS                     1 of 1     17.1ms  5.39s        201Mi  kept the SLO
     256Mi  PASS                     1 of 1     16.9ms  5.40s        201Mi  kept the SLO
     215Mi  PASS                     1 of 1     17.1ms  5.43s        201Mi  kept the SLO
     212Mi  PASS, recommended        8 of 8     17.8ms  5.38s        201Mi  kept the SLO
     197Mi  PASS                     6 of 6     16.5ms  5.38s        197Mi  kept the SLO
     195Mi  SLO MISS                 0 of 1      109ms  5.24s        195Mi  p99<50ms was measured as 109
                                                                            ms; garbage collection
                                                                            stopped it 33 % of the time
     189Mi  SLO MISS                 0 of 1      128ms  5.42s        189Mi  p99<50ms was measured as 128
                                                                            ms; garbage collection
                                                                            stopped it 32 % of the time
     181Mi  SLO MISS                 0 of 1      152ms  5.37s        181Mi  p99<50ms was measured as 152
                                                                            ms; garbage collection
                                                                            stopped it 34 % of the time
     128Mi  KO cgroup oom            0 of 1          –      –        128Mi  the kernel killed it at its
                                                                            limit of 128Mi while it
                                                                            started; peak 128Mi

    Latency by percentile
    From the intended send time, over all scheduled requests of the measured phase; the median of the
    trials. A request that failed counts as slower than every other; a dash means that the median lies
    there. The SLO: p99<50ms, errors<0.1% and start<20s.

    Configuration  Trials     p50     p90     p99   p99.9  p99.99
    ─────────────  ──────  ──────  ──────  ──────  ──────  ──────
    1Gi                 1  3.86ms  5.06ms  17.1ms  28.3ms  30.7ms
    256Mi               1  3.92ms  5.07ms  16.9ms  27.8ms  40.3ms
    215Mi               1  3.90ms  5.07ms  17.1ms  27.3ms  31.7ms
    212Mi               8  3.88ms  5.07ms  16.3ms  27.3ms  33.0ms
    197Mi               6  3.87ms  5.07ms  16.3ms  26.4ms  33.9ms
    195Mi               1  3.90ms  5.07ms   109ms   326ms       –
    189Mi               1  3.90ms  5.07ms   128ms   355ms       –
    181Mi               1  3.88ms  5.07ms   152ms   369ms       –

    Options, and where they come from

    Option                         Chosen by   Evidence
    ─────────────────────────────  ──────────  ───────────────────────────
    -XX:+UseSerialGC               the user    as given
    -XX:MaxMetaspaceSize=88m       measured    trials 1-4, 6-22
    -XX:ReservedCodeCacheSize=48m  calculated  from the limits, by formula

    What was not trusted
    Left out of every figure above, because they say nothing about the application: 1 of 22 trials.
    - Trial 5 (215Mi): INVALID noise. other programs used 61 % of the machine's CPUs while it was
      measured
    - transparent huge pages are set to always; the limit counts them (trial 3)
    ");
}

/// A search in which `passes` of twenty fresh starts passed.
fn proven_by(passes: u64) -> loadline_report::ResultView {
    let mut view = fixture::search();
    let recommendation = view.recommendation.as_mut().expect("a recommendation");
    (recommendation.proof.passes, recommendation.proof.starts) = (passes, 20);
    view
}

#[test]
fn a_failed_proof_is_the_verdict_and_one_miss_in_twenty_is_none() {
    let failed = headline(&proven_by(12));
    assert_eq!(failed.badge, "Test failed");
    assert_eq!(
        failed.sentence,
        "For spring-web 1 CPU and 212Mi with -XX:+UseSerialGC was found, but 8 of 20 fresh starts missed p99<50ms, errors<0.1% and start<20s."
    );
    let proven = headline(&proven_by(19));
    assert_eq!(proven.badge, "Tested");
    assert!(proven.sentence.contains("in 19 of 20 fresh starts"));
}

/// A search with trials so short that the pooled p99 of all twenty starts was `high` at most.
fn short_trials(high: f64) -> loadline_report::ResultView {
    let mut view = proven_by(20);
    let objective = view.slo.objectives[0];
    let recommendation = view.recommendation.as_mut().expect("a recommendation");
    recommendation.proof.pooled = vec![loadline_analysis::pooled::PooledPercentile {
        request: None,
        objective,
        starts: 20,
        requests_of_a_start: 400,
        requests: 8000,
        measured: Some(0.031),
        low: Some(0.028),
        high: Some(high),
    }];
    view
}

#[test]
fn percentiles_of_short_trials_are_told_over_all_starts() {
    let together = "p99 rests on 4 of 400 requests in one start, so those of all 20 count together: p99 of 8000 was 31ms (95 % confidence: 28ms to 40ms), the SLO allows 50ms.";
    let proven = headline(&short_trials(0.04));
    assert_eq!(proven.badge, "Tested");
    assert!(proven.details.iter().any(|d| d == together), "{proven:?}");
    let broken = headline(&short_trials(0.05));
    assert_eq!(broken.badge, "Test failed");
    let end = "28ms to exactly 50ms), the SLO allows 50ms.";
    assert!(broken.sentence.ends_with(end), "{}", broken.sentence);
}

#[test]
fn a_matrix_in_markdown() {
    insta::assert_snapshot!(loadline_report::render_markdown(&fixture::matrix()), @r#"
    **6 of 12 configurations keep p99&lt;50ms, errors&lt;0.1% and start&lt;20s under GET /owners?lastName=Da at 300/s (open model, 30 s); the smallest of them have 1 CPU and 300Mi.**

    The question: How far down does each option set carry the service?

    Measured by 12 trials in 17 min, 2026-11-20 13:27 UTC, on 2 CPUs of AMD EPYC 7B13, 8Gi, Linux 6.1.0-28-amd64 (Debian 12), cgroup hybrid; JDK 17 debian 17.0.13+11; loadline 0.1.0.

    ### Which sizes keep the SLO?

    All with 1 CPU.

    In each cell: the verdict, how many of the trials kept the SLO, the worst p99 and the start time.

    | Configuration | 600Mi | 300Mi | 190Mi | 150Mi |
    | --- | --- | --- | --- | --- |
    | default | PASS, 16.7ms, start 5.44s | PASS, 17.4ms, start 5.27s | SLO MISS, 140ms, start 5.37s | KO cgroup oom |
    | c1 | PASS, 16.7ms, start 5.46s | PASS, 16.4ms, start 5.29s | SLO MISS, 123ms, start 5.34s | KO cgroup oom |
    | serial | PASS, 16.9ms, start 5.25s | PASS, 16.1ms, start 5.49s | SLO MISS, 174ms, start 5.38s | KO cgroup oom |

    - default: nothing added
    - c1: -XX:TieredStopAtLevel=1
    - serial: -XX:+UseSerialGC

    ### Latency by percentile

    From the intended send time, over all scheduled requests of the measured phase; the median of the trials. A request that failed counts as slower than every other; a dash means that the median lies there. The SLO: p99&lt;50ms, errors&lt;0.1% and start&lt;20s.

    | Configuration | Trials | p50 | p90 | p99 | p99.9 | p99.99 |
    | --- | ---: | ---: | ---: | ---: | ---: | ---: |
    | 600Mi, default | 1 | 3.89ms | 5.07ms | 16.7ms | 25.7ms | 31.2ms |
    | 300Mi, default | 1 | 3.90ms | 5.09ms | 17.4ms | 26.4ms | 31.3ms |
    | 190Mi, default | 1 | 3.85ms | 5.06ms | 140ms | 396ms | – |
    | 600Mi, c1 | 1 | 3.90ms | 5.08ms | 16.7ms | 26.8ms | 30.9ms |
    | 300Mi, c1 | 1 | 3.85ms | 5.06ms | 16.4ms | 27.1ms | 32.8ms |
    | 190Mi, c1 | 1 | 3.88ms | 5.05ms | 123ms | 334ms | – |
    | 600Mi, serial | 1 | 3.86ms | 5.06ms | 16.9ms | 28.3ms | 32.0ms |
    | 300Mi, serial | 1 | 3.89ms | 5.07ms | 16.1ms | 25.3ms | 28.0ms |
    | 190Mi, serial | 1 | 3.89ms | 5.09ms | 174ms | – | – |

    ### How long until it is fast

    Medians over the trials. A JVM that has just started interprets its code and compiles it while it serves: the first seconds are the slowest. The warm-up is sent and recorded but not judged. Steady means that CPU time per request stays within 5 %; it takes at least 30 s of load to say so.

    | Configuration | Ready after | p50, first second | p50, last of warm-up | p50, judged | Steady |
    | --- | ---: | ---: | ---: | ---: | --- |
    | 600Mi, default | 5.44s | 23.5ms | 3.92ms | 3.89ms | from the first second |
    | 600Mi, c1 | 5.46s | 23.1ms | 3.95ms | 3.90ms | from the first second |
    | 600Mi, serial | 5.25s | 23.7ms | 3.83ms | 3.85ms | from the first second |
    | 300Mi, default | 5.27s | 23.2ms | 3.82ms | 3.90ms | from the first second |
    | 300Mi, c1 | 5.29s | 24.7ms | 3.88ms | 3.86ms | from the first second |
    | 300Mi, serial | 5.49s | 23.7ms | 3.80ms | 3.88ms | from the first second |
    | 190Mi, default | 5.37s | 23.9ms | 3.97ms | 3.85ms | from the first second |
    | 190Mi, c1 | 5.34s | 22.9ms | 3.93ms | 3.84ms | from the first second |
    | 190Mi, serial | 5.38s | 23.5ms | 3.86ms | 3.89ms | from the first second |

    ### Where the memory goes

    The fullest second of each size, as the kernel counts it. Anonymous memory is the heap and all else the JVM wrote to; it cannot be dropped. Files in use are code and jars: when they no longer fit they are read again and again, and the service thrashes long before the kernel kills it. Heap after GC is what the application keeps; heap allowed is what the JVM may grow to.

    | Configuration | Anonymous | Files in use | Can be dropped | Free | Heap after GC | Heap allowed |
    | --- | ---: | ---: | ---: | ---: | ---: | ---: |
    | 600Mi, default | 157Mi (26 %) | 32Mi (5 %) | 12Mi (2 %) | 399Mi (66 %) | 47Mi | 64Mi |
    | 600Mi, c1 | 157Mi (26 %) | 32Mi (5 %) | 12Mi (2 %) | 399Mi (66 %) | 47Mi | 64Mi |
    | 600Mi, serial | 157Mi (26 %) | 32Mi (5 %) | 12Mi (2 %) | 399Mi (66 %) | 47Mi | 64Mi |
    | 300Mi, default | 157Mi (52 %) | 32Mi (11 %) | 12Mi (4 %) | 99Mi (33 %) | 47Mi | 64Mi |
    | 300Mi, c1 | 157Mi (52 %) | 32Mi (11 %) | 12Mi (4 %) | 99Mi (33 %) | 47Mi | 64Mi |
    | 300Mi, serial | 157Mi (52 %) | 32Mi (11 %) | 12Mi (4 %) | 99Mi (33 %) | 47Mi | 64Mi |
    | 190Mi, default | 156Mi (82 %) | 22Mi (12 %) | 12Mi (6 %) | 0 (0 %) | 47Mi | 64Mi |
    | 190Mi, c1 | 155Mi (82 %) | 23Mi (12 %) | 12Mi (6 %) | 0 (0 %) | 47Mi | 64Mi |
    | 190Mi, serial | 153Mi (81 %) | 25Mi (13 %) | 12Mi (6 %) | 0 (0 %) | 47Mi | 64Mi |
    | 150Mi, default | 148Mi (99 %) | 0 (0 %) | 2Mi (1 %) | 0 (0 %) | – | – |
    | 150Mi, c1 | 148Mi (99 %) | 0 (0 %) | 2Mi (1 %) | 0 (0 %) | – | – |
    | 150Mi, serial | 148Mi (99 %) | 0 (0 %) | 2Mi (1 %) | 0 (0 %) | – | – |

    <details><summary>All 12 trials</summary>

    | Trial | Purpose | Configuration | Verdict | p99 | Achieved | Failed | Start | Peak memory | GC stopped | Throttled | Reason |
    | ---: | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
    | 1 | matrix | 600Mi, default | PASS | 16.7ms | 300/s | 0 % | 5.44s | 201Mi | 1.36 % | 1.50 % | it kept every objective |
    | 2 | matrix | 300Mi, default | PASS | 17.4ms | 300/s | 0 % | 5.27s | 201Mi | 1.26 % | 1.50 % | it kept every objective |
    | 3 | matrix | 190Mi, default | SLO MISS | 140ms | 300/s | 0.10 % | 5.37s | 190Mi | 32.5 % | 30 % | p99&lt;50ms was measured as 140 ms; garbage collection stopped it 33 % of the time |
    | 4 | matrix | 150Mi, default | KO cgroup oom | – | – | – | – | 150Mi | – | – | the kernel killed it at its limit of 150Mi while it started; peak 150Mi |
    | 5 | matrix | 600Mi, c1 | PASS | 16.7ms | 300/s | 0 % | 5.46s | 201Mi | 1.32 % | 1.50 % | it kept every objective |
    | 6 | matrix | 300Mi, c1 | PASS | 16.4ms | 300/s | 0 % | 5.29s | 201Mi | 1.37 % | 1.50 % | it kept every objective |
    | 7 | matrix | 190Mi, c1 | SLO MISS | 123ms | 300/s | 0.0667 % | 5.34s | 190Mi | 30.9 % | 30 % | p99&lt;50ms was measured as 123 ms; garbage collection stopped it 31 % of the time |
    | 8 | matrix | 150Mi, c1 | KO cgroup oom | – | – | – | – | 150Mi | – | – | the kernel killed it at its limit of 150Mi while it started; peak 150Mi |
    | 9 | matrix | 600Mi, serial | PASS | 16.9ms | 300/s | 0 % | 5.25s | 201Mi | 1.43 % | 1.50 % | it kept every objective |
    | 10 | matrix | 300Mi, serial | PASS | 16.1ms | 300/s | 0 % | 5.49s | 201Mi | 1.19 % | 1.50 % | it kept every objective |
    | 11 | matrix | 190Mi, serial | SLO MISS | 174ms | 299/s | 0.23 % | 5.38s | 190Mi | 30.3 % | 30 % | p99&lt;50ms was measured as 174 ms; garbage collection stopped it 30 % of the time |
    | 12 | matrix | 150Mi, serial | KO cgroup oom | – | – | – | – | 150Mi | – | – | the kernel killed it at its limit of 150Mi while it started; peak 150Mi |

    </details>

    ### What was not trusted

    All 12 trials were valid.

    - transparent huge pages are set to always; the limit counts them (trial 3)

    <details><summary>How to reproduce it</summary>

    ```text
    loadline run experiments/memory-floor.toml
    ```

    | Machine |  |
    | --- | --- |
    | loadline | `0.1.0` |
    | Kernel | `Linux 6.1.0-28-amd64 (Debian 12)` |
    | CPU | `AMD EPYC 7B13` |
    | CPUs | `2` |
    | Memory | `8Gi` |
    | cgroup | `hybrid` |
    | JDK | `17 debian 17.0.13+11` |
    | Version of the application | `–` |
    | Result | `01936f2a-ffff-7000-8000-000000000001` |

    The experiment:

    ```text
    [app]
    command = ["java", "-jar", "spring-web.jar"]
    ready = { http = "/health", port = 8080 }

    [load]
    path = "/owners?lastName=Da"
    rate = "300/s"

    [slo]
    objectives = "p99<50ms,errors<0.1%,start<20s"
    ```

    </details>
    "#);
}

#[test]
fn a_matrix_as_junit() {
    insta::assert_snapshot!(loadline_report::render_junit(&fixture::matrix()), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuite name="memory-floor" tests="12" failures="6" errors="0" skipped="0" time="994.000">
      <testcase classname="memory-floor" name="600Mi, default keeps p99&lt;50ms,errors&lt;0.1%,start&lt;20s"/>
      <testcase classname="memory-floor" name="300Mi, default keeps p99&lt;50ms,errors&lt;0.1%,start&lt;20s"/>
      <testcase classname="memory-floor" name="190Mi, default keeps p99&lt;50ms,errors&lt;0.1%,start&lt;20s">
        <failure type="SLO MISS" message="p99&lt;50ms was measured as 140 ms; garbage collection stopped it 33 % of the time"/>
      </testcase>
      <testcase classname="memory-floor" name="150Mi, default keeps p99&lt;50ms,errors&lt;0.1%,start&lt;20s">
        <failure type="KO cgroup oom" message="the kernel killed it at its limit of 150Mi while it started; peak 150Mi"/>
      </testcase>
      <testcase classname="memory-floor" name="600Mi, c1 keeps p99&lt;50ms,errors&lt;0.1%,start&lt;20s"/>
      <testcase classname="memory-floor" name="300Mi, c1 keeps p99&lt;50ms,errors&lt;0.1%,start&lt;20s"/>
      <testcase classname="memory-floor" name="190Mi, c1 keeps p99&lt;50ms,errors&lt;0.1%,start&lt;20s">
        <failure type="SLO MISS" message="p99&lt;50ms was measured as 123 ms; garbage collection stopped it 31 % of the time"/>
      </testcase>
      <testcase classname="memory-floor" name="150Mi, c1 keeps p99&lt;50ms,errors&lt;0.1%,start&lt;20s">
        <failure type="KO cgroup oom" message="the kernel killed it at its limit of 150Mi while it started; peak 150Mi"/>
      </testcase>
      <testcase classname="memory-floor" name="600Mi, serial keeps p99&lt;50ms,errors&lt;0.1%,start&lt;20s"/>
      <testcase classname="memory-floor" name="300Mi, serial keeps p99&lt;50ms,errors&lt;0.1%,start&lt;20s"/>
      <testcase classname="memory-floor" name="190Mi, serial keeps p99&lt;50ms,errors&lt;0.1%,start&lt;20s">
        <failure type="SLO MISS" message="p99&lt;50ms was measured as 174 ms; garbage collection stopped it 30 % of the time"/>
      </testcase>
      <testcase classname="memory-floor" name="150Mi, serial keeps p99&lt;50ms,errors&lt;0.1%,start&lt;20s">
        <failure type="KO cgroup oom" message="the kernel killed it at its limit of 150Mi while it started; peak 150Mi"/>
      </testcase>
    </testsuite>
    "#);
}

#[test]
fn sizes_that_a_search_found_too_small_fail_no_build() {
    let view = fixture::search();
    let text = loadline_report::render_junit(&view);
    assert!(
        text.contains(" failures=\"0\" errors=\"0\" skipped=\""),
        "{text}"
    );
    assert!(!text.contains(" skipped=\"0\""), "{text}");
    assert!(
        text.contains("<skipped message=\"too small, tried on the way"),
        "{text}"
    );
    // Without an answer they are what the result says.
    let none = loadline_report::ResultView {
        recommendation: None,
        ..view
    };
    let text = loadline_report::render_junit(&none);
    assert!(
        !text.contains("<skipped") && text.contains("<failure"),
        "{text}"
    );
}

#[test]
fn what_was_not_run_is_an_error_in_junit() {
    let mut cut = fixture::matrix();
    cut.trials.truncate(1);
    cut.incomplete = Some("interrupted after 1 trials".to_owned());
    let text = loadline_report::render_junit(&cut);
    assert!(
        text.contains(" tests=\"2\" failures=\"0\" errors=\"1\" "),
        "{text}"
    );
    assert!(text.contains("<error type=\"INCOMPLETE\" message=\"interrupted after 1 trials\"/>"));
    cut.trials.clear();
    cut.incomplete = None;
    let text = loadline_report::render_junit(&cut);
    assert!(
        text.contains(" tests=\"1\" failures=\"0\" errors=\"1\" "),
        "{text}"
    );
    assert!(text.contains("message=\"no trial has finished\""), "{text}");
}

#[test]
fn the_smallest_counts_all_instances_and_needs_a_limit() {
    let sentence = |view: &loadline_report::ResultView| headline(view).sentence;
    let mut view = fixture::matrix();
    // Three small ones need more than one large one.
    for trial in &mut view.trials {
        if trial.configuration.memory == Some(Bytes::from_mib(300)) {
            trial.configuration.instances = 3;
        }
    }
    let text = sentence(&view);
    assert!(
        text.ends_with("the smallest of them have 1 CPU and 600Mi."),
        "{text}"
    );
    let mut alone = view.clone();
    alone.trials.truncate(1);
    let text = sentence(&alone);
    assert!(text.contains("with 1 CPU and 600Mi keeps"), "{text}");
    assert!(text.ends_with("1 of 1 start did."), "{text}");
    alone.trials.splice(.., [view.trials[3].clone()]);
    let text = sentence(&alone);
    assert!(
        text.contains("does not keep") && text.ends_with("0 of 1 start did."),
        "{text}"
    );
    view.trials.truncate(4);
    let text = sentence(&view);
    assert!(text.contains("the smallest of them is 600Mi"), "{text}");
    for trial in &mut view.trials {
        trial.configuration.memory = None;
    }
    assert!(!sentence(&view).contains("smallest"), "{}", sentence(&view));
}

#[test]
fn labels_that_tell_jdks_apart_are_kept() {
    let mut view = fixture::matrix();
    for trial in &mut view.trials {
        let configuration = &mut trial.configuration;
        let (jdk, label) = match configuration.label.rsplit_once(' ') {
            Some((size, "default")) => ("temurin-25", format!("{size} hotspot")),
            Some((size, "c1")) => ("openj9-25", format!("{size} j9")),
            Some((size, _)) => ("openj9-25", format!("{size} j9-cached")),
            None => unreachable!("all have a size and a label"),
        };
        if !label.ends_with("cached") {
            configuration.jvm_options.clear();
        }
        configuration.jdk = Some(jdk.to_owned());
        configuration.label = label;
    }
    let text = loadline_report::render_markdown(&view);
    for row in ["| hotspot |", "| j9 |", "| j9-cached |"] {
        assert!(text.contains(row), "{row} in {text}");
    }
    assert!(!text.contains("| openj9-25 |"), "{text}");
    // A factor of JDKs next to a factor of options: the JDK stands for itself, once.
    for trial in &mut view.trials {
        let configuration = &mut trial.configuration;
        let (size, label) = configuration.label.split_once(' ').expect("both");
        configuration.label = format!(
            "{size} jdk{} {label}",
            configuration.jdk.as_deref().expect("set")
        );
    }
    let text = loadline_report::render_markdown(&view);
    assert!(
        text.contains("| j9-cached |") && !text.contains("jdkopenj9-25"),
        "{text}"
    );
}

#[test]
fn labels_of_levels_with_the_same_options_at_sizes_of_their_own_are_kept() {
    let mut view = fixture::matrix();
    view.trials
        .retain(|trial| trial.configuration.label.ends_with("default"));
    for trial in &mut view.trials {
        let configuration = &mut trial.configuration;
        let size = configuration.memory.expect("it has a limit");
        configuration.label = format!("plan-{}", size.as_bytes() >> 20);
    }
    let text = loadline_report::render_markdown(&view);
    for trial in &view.trials {
        let label = &trial.configuration.label;
        assert!(text.contains(label), "{label} in {text}");
    }
}

#[test]
fn csv_has_a_row_for_each_trial_and_as_many_fields_as_columns() {
    let view = fixture::matrix();
    let csv = loadline_report::render_csv(&view);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), view.trials.len() + 1);
    for line in &lines[1..] {
        // No field of this fixture holds a comma inside quotes but the name and the reason.
        assert!(
            line.matches(',').count() >= lines[0].matches(',').count(),
            "{line}"
        );
    }
}

#[test]
fn csv_keeps_failures_in_every_mean() {
    let csv = loadline_report::render_csv(&fixture::search());
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().expect("the names").split(',').collect();
    let column = |name: &str| names.iter().position(|own| *own == name).expect(name);
    let failed: Vec<Vec<&str>> = lines
        .map(|line| line.split(',').collect())
        .filter(|row: &Vec<&str>| row[column("cause")] == "cgroup_oom")
        .collect();
    assert!(!failed.is_empty(), "{csv}");
    for row in failed {
        assert_eq!(row[column("verdict")], "KO");
        assert_eq!(row[column("p99_s")], "inf", "{row:?}");
        assert_eq!(row[column("oom_kills")], "1", "{row:?}");
    }
}

#[test]
fn seconds_have_a_row_each_with_their_phase_and_infinite_failures() {
    let mut view = fixture::search();
    view.trials.truncate(2);
    let trial = &mut view.trials[1];
    let second = |at_s: u64, achieved, errors, p99| SecondEvidence {
        at_ns: at_s * 1_000_000_000,
        achieved: Some(achieved),
        errors: Some(errors),
        p99,
        ..Default::default()
    };
    trial.evidence.seconds = vec![
        second(2, 0, 0, None),
        second(3, 90, 10, None),
        second(4, 100, 0, Some(Duration::from_millis(12))),
    ];
    let span = |phase, start: u64, end: u64| PhaseSpan {
        phase,
        start: start * 1_000_000_000,
        end: end * 1_000_000_000,
    };
    trial.evidence.phases = vec![
        span(TrialPhase::Start, 1, 2),
        span(TrialPhase::Measure, 2, 4),
    ];
    view.trials[0].evidence.seconds.clear();
    let csv = loadline_report::render_seconds(&view);
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|own| *own == name).expect(name);
    let cells = |name| {
        rows[1..]
            .iter()
            .map(|row| row[column(name)])
            .collect::<Vec<_>>()
    };
    assert_eq!(cells("trial"), ["2", "2", "2"]);
    assert_eq!(cells("phase"), ["start", "measure", "measure"]);
    assert_eq!(cells("second"), ["1.000", "2.000", "3.000"]);
    assert_eq!(cells("p99_s"), ["", "inf", "0.012"]);
    assert_eq!(cells("errors"), ["0", "10", "0"]);
    assert_eq!(cells("memory_bytes"), ["", "", ""]);
}

#[test]
fn json_lines_are_the_records_of_the_json() {
    let view = fixture::search();
    let whole: serde_json::Value =
        serde_json::from_str(&loadline_report::render_json(&view)).expect("JSON");
    let lines = loadline_report::render_json_lines(&view);
    let records: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(whole["trials"], serde_json::Value::Array(records));
}

#[test]
fn json_reads_back_as_the_records() {
    let view = fixture::search();
    let value: serde_json::Value =
        serde_json::from_str(&loadline_report::render_json(&view)).expect("JSON");
    let trials: Vec<loadline_analysis::record::TrialRecord> =
        serde_json::from_value(value["trials"].clone()).expect("records");
    assert_eq!(trials, view.trials);
}

#[test]
fn the_parts_of_a_report_agree() {
    let view = fixture::search();
    let text = loadline_report::render_terminal(&view, 200);
    let recommended = view.recommendation.as_ref().expect("a recommendation");
    let memory = recommended.recommended_memory().to_string();
    let passed = |t: &&loadline_analysis::record::TrialRecord| {
        t.configuration.memory == Some(recommended.recommended_memory())
            && t.verdict == TrialVerdict::Pass
    };
    let passes = view.trials.iter().filter(passed).count();
    assert!(
        text.contains(&format!(
            "and {memory} with -XX:+UseSerialGC: at 300 requests/s it kept "
        )),
        "{text}"
    );
    assert_eq!(passes as u64, recommended.proof.starts);
    assert!(text.contains(&format!("0 of {passes} fresh starts")));
    let row = text
        .lines()
        .find(|l| l.contains("PASS, recommended"))
        .expect("its row");
    assert!(row.trim_start().starts_with(&memory), "{row}");
    assert!(row.contains(&format!("{passes} of {passes}")), "{row}");
    let headline = text
        .lines()
        .find(|l| l.starts_with("Under "))
        .expect("the load");
    let worst = row
        .split_whitespace()
        .find(|w| w.ends_with("ms"))
        .expect("the worst p99");
    assert!(
        headline.contains(&format!("to {worst})")),
        "{headline} {worst}"
    );
}

#[test]
fn a_search_stays_below_half_a_megabyte() {
    let html = loadline_report::render_html(&fixture::search());
    assert!(html.len() <= 500_000, "{}", html.len());
}

#[test]
fn the_page_fetches_nothing_and_has_no_inline_style_or_handler() {
    let html = loadline_report::render_html(&fixture::search());
    let page = &html[..html.find("<script type").expect("the data follow the page")];
    for forbidden in [
        " style=",
        " onclick=",
        " onload=",
        "src=",
        "url(",
        "@import",
        "http-equiv=\"refresh",
    ] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(page.contains("default-src 'none'; script-src 'sha256-"));
    assert!(!page.contains("unsafe"));
}

#[test]
fn the_search_path_marks_each_trial_by_shape() {
    let html = loadline_report::render_html(&fixture::search());
    let start = html.find("<svg class=\"path\"").expect("the search path");
    let end = html[start..].find("</svg>").expect("its end") + start;
    let svg = &html[start..end];
    let count = |class: &str| svg.matches(&format!("class=\"{class}\"")).count();
    assert_eq!(
        (count("pass"), count("fail"), count("none"), count("ring")),
        // One of each in the key.
        (18, 5, 2, 9)
    );
    let marks: Vec<&str> = svg
        .lines()
        .filter(|l| l.starts_with("<g>"))
        .take(3)
        .collect();
    insta::assert_snapshot!(marks.join("\n"), @r#"
    <g><title>Trial 1, search, 1Gi: PASS. it kept every objective</title><circle class="pass" cx="90.0" cy="40.0" r="5"/></g>
    <g><title>Trial 2, search, 256Mi: PASS. it kept every objective</title><circle class="pass" cx="120.4" cy="62.0" r="5"/></g>
    <g><title>Trial 3, search, 128Mi: KO cgroup oom. the kernel killed it at its limit of 128Mi while it started; peak 128Mi</title><path class="fail" d="M145.8 211.0L155.8 221.0M145.8 221.0L155.8 211.0"/></g>
    "#);
    assert!(!loadline_report::render_html(&fixture::matrix()).contains("<svg class=\"path\""));
}

/// The numbers of `(81 %)` in a line.
fn percents(line: &str) -> Vec<u32> {
    let ends = line
        .split(" %)")
        .filter_map(|before| before.rsplit('(').next());
    ends.filter_map(|number| number.parse().ok()).collect()
}

#[test]
fn the_parts_of_memory_add_up_to_the_limit() {
    for view in [fixture::search(), fixture::matrix()] {
        let section = loadline_report::markdown_section(&view, "memory").expect("it is there");
        let rows: Vec<Vec<u32>> = section.lines().map(percents).collect();
        let rows: Vec<_> = rows.iter().filter(|r| !r.is_empty()).collect();
        assert!(rows.len() >= 8, "{section}");
        for row in rows {
            let sum: u32 = row.iter().sum();
            assert!(row.len() == 4 && (98..=102).contains(&sum), "{row:?}");
        }
        let html = loadline_report::render_html(&view);
        let (_, bars) = html.split_once("<svg class=\"bars\"").expect("drawn");
        let (bars, _) = bars.split_once("</svg>").expect("it ends");
        assert!(
            !bars.contains("NaN") && !bars.contains("width=\"-"),
            "{bars}"
        );
    }
}

#[test]
fn sections_without_data_are_absent() {
    let mut view = fixture::search();
    for trial in &mut view.trials {
        trial.evidence.seconds.clear();
    }
    let there = loadline_report::markdown_section(&view, "").expect_err("no such section");
    for absent in ["memory", "warm-up"] {
        assert!(!there.contains(&absent), "{there:?}");
    }
    assert!(there.contains(&"sizes"));
}

/// What stands before the first picture, without tags.
fn first_screen(html: &str) -> String {
    let (_, rest) = html
        .split_once("<section id=\"verdict\"")
        .expect("a verdict");
    rest.split_once("</section>").expect("its end").0.to_owned()
}

/// Commands stand between backticks in sentences, and are code on pages.
fn without_code(text: &str) -> String {
    let marks = ["`", "<code>", "</code>"];
    (marks.iter()).fold(text.to_owned(), |text, mark| text.replace(mark, ""))
}

#[test]
fn the_first_screen_says_each_thing_once() {
    let mut told = fixture::search();
    told.today = Some("2/4Gi".parse().expect("a size"));
    told.incomplete = Some("interrupted".to_owned());
    for (view, next) in [
        (
            told,
            "<dl class=\"facts\">\n<div><dt>Not complete</dt><dd>The result is not complete: interrupted.</dd></div>\n\
             <div><dt>Saving</dt><dd>Today spring-web ships with 2 CPUs and 4Gi",
        ),
        (
            fixture::search(),
            "<dt>Next smaller</dt><dd>195Mi is too small (trial 22)",
        ),
        (drawings::cheapest(), "<dt>Next cheaper</dt><dd>"),
    ] {
        let screen = without_code(&first_screen(&loadline_report::render_html(&view)));
        assert!(screen.contains(next), "{screen}");
        assert_eq!(
            screen.matches("fresh starts of exactly this size").count(),
            1
        );
        for fact in loadline_report::content::facts(&view) {
            let words = without_code(&fact.words.replace('<', "&lt;"));
            assert_eq!(screen.matches(&words).count(), 1, "{words} in {screen}");
        }
        // The content of all other formats is there, some folded.
        for detail in headline(&view).details {
            let detail = without_code(&detail.replace('<', "&lt;"));
            assert!(screen.contains(&detail), "{detail}");
        }
    }
    let screen = first_screen(&loadline_report::render_html(&fixture::matrix()));
    assert!(!screen.contains("<dl"), "{screen}");
}

#[test]
fn what_is_for_a_mail_has_no_script_and_nothing_folded() {
    let view = fixture::search();
    let comparison = loadline_report::compare::compare(&view, &view);
    let comparison = loadline_report::compare::comparison_html(&comparison);
    let mail = loadline_report::render_mail(&view);
    assert!(mail.len() < 150_000, "{}", mail.len());
    for html in [mail, comparison] {
        assert!(
            !html.contains("<script") && !html.contains("<canvas"),
            "{html}"
        );
        assert!(html.contains("default-src 'none'; style-src 'sha256-"));
        assert_eq!(html.matches("<details>").count(), 0);
        assert!(html.contains("<details open>"));
    }
}

#[test]
fn a_terminal_of_80_cells_is_not_overrun_where_a_column_wraps() {
    for view in [fixture::search(), fixture::matrix(), drawings::cheapest()] {
        for text in [
            loadline_report::render_terminal(&view, 80),
            loadline_report::render_brief(&view, 80),
        ] {
            let long: Vec<&str> = text.lines().filter(|l| l.chars().count() > 80).collect();
            assert_eq!(long, Vec::<&str>::new());
        }
    }
}

#[test]
fn openmetrics_say_the_answer_and_each_trial() {
    let metrics = loadline_report::render_openmetrics(&[fixture::search()]);
    let head: Vec<&str> = metrics
        .lines()
        .filter(|line| !line.contains("trial="))
        .collect();
    insta::assert_snapshot!(head.join("\n"), @r#"
    # TYPE loadline_recommended_memory_bytes gauge
    # UNIT loadline_recommended_memory_bytes bytes
    # HELP loadline_recommended_memory_bytes Memory limit of the answer.
    loadline_recommended_memory_bytes{service="spring-web",result="01936f2a-ffff-7000-8000-000000000001"} 222298112
    # TYPE loadline_recommended_cpu_cores gauge
    # UNIT loadline_recommended_cpu_cores cores
    # HELP loadline_recommended_cpu_cores CPU limit of the answer.
    loadline_recommended_cpu_cores{service="spring-web",result="01936f2a-ffff-7000-8000-000000000001"} 1
    # TYPE loadline_proof_starts gauge
    # HELP loadline_proof_starts Fresh starts at the size of the answer.
    loadline_proof_starts{service="spring-web",result="01936f2a-ffff-7000-8000-000000000001"} 8
    # TYPE loadline_proof_passes gauge
    # HELP loadline_proof_passes Fresh starts at the size of the answer that kept the SLO.
    loadline_proof_passes{service="spring-web",result="01936f2a-ffff-7000-8000-000000000001"} 8
    # TYPE loadline_answer_soaked gauge
    # HELP loadline_answer_soaked 1 where a soak of the answer stayed within its budget.
    loadline_answer_soaked{service="spring-web",result="01936f2a-ffff-7000-8000-000000000001"} 0
    # TYPE loadline_measured_timestamp_seconds gauge
    # UNIT loadline_measured_timestamp_seconds seconds
    # HELP loadline_measured_timestamp_seconds When the last trial was started, in seconds since 1970-01-01.
    loadline_measured_timestamp_seconds{service="spring-web",result="01936f2a-ffff-7000-8000-000000000001"} 1795183140
    # TYPE loadline_trial_latency_seconds gauge
    # UNIT loadline_trial_latency_seconds seconds
    # HELP loadline_trial_latency_seconds Latency of a trial from the intended send time; +Inf where it lies in failures.
    # TYPE loadline_trial_peak_memory_bytes gauge
    # UNIT loadline_trial_peak_memory_bytes bytes
    # HELP loadline_trial_peak_memory_bytes Highest memory of a trial, page cache included.
    # EOF
    "#);
    assert!(metrics.ends_with("# EOF\n"));
    let failed = "trial=\"3\",verdict=\"KO\",cause=\"cgroup_oom\"";
    assert!(metrics.contains(failed), "{metrics}");
}

#[test]
fn an_answer_below_which_nothing_failed_names_the_size_that_passed() {
    let mut view = fixture::search();
    view.trials.retain(|t| t.verdict == TrialVerdict::Pass);
    let recommendation = view.recommendation.as_mut().expect("a recommendation");
    recommendation.next_smaller = None;
    let details = headline(&view).details;
    let wanted = "No smaller size failed: ";
    assert!(details.iter().any(|d| d.starts_with(wanted)), "{details:?}");
}

#[test]
fn a_size_that_was_passed_over_is_named() {
    let mut view = fixture::search();
    view.trials.retain(|t| t.verdict == TrialVerdict::Pass);
    let recommendation = view.recommendation.as_mut().expect("a recommendation");
    recommendation.next_smaller = None;
    let mut unmeasured = view.trials[0].clone();
    unmeasured.configuration.memory = Some(Bytes::from_mib(180));
    unmeasured.verdict = TrialVerdict::Invalid(InvalidReason::Noise);
    unmeasured.reason = "other programs used 31 % of the CPUs".to_owned().into();
    view.trials.push(unmeasured);
    let details = headline(&view).details;
    let wanted = "Less memory may be enough: 180Mi could not be measured (INVALID noise: other programs used 31 % of the CPUs). Size again when the machine is quiet.";
    assert!(details.iter().any(|d| d == wanted), "{details:?}");
}

#[test]
fn an_experiment_begins_with_its_best_and_its_worst() {
    let mut view = fixture::matrix();
    let first = view.trials[0].configuration.jvm_options.clone();
    for trial in &mut view.trials {
        trial.configuration.memory = Some(Bytes::from_mib(600));
        for load in &mut trial.evidence.load {
            load.offered_rate = None;
            let is_first = trial.configuration.jvm_options == first;
            load.achieved_rate = if is_first { 400.0 } else { 200.0 };
        }
    }
    let sentence = headline(&view).sentence;
    assert!(sentence.starts_with("Most requests: "), "{sentence}");
    assert!(sentence.contains(" (400/s); fewest: "), "{sentence}");
    assert!(sentence.contains(" (200/s). "), "{sentence}");
}
