use std::time::Duration;

use super::super::{GcLog, GcLogBuilder, WallClock, read};

/// A global collection of J9 2.8 that System.gc() asked for, from its documentation of the format.
const GLOBAL: &str = r#"<?xml version="1.0" ?>

<verbosegc xmlns="http://www.ibm.com/j9/verbosegc" version="R28_CMPRSS">

<initialized id="1" timestamp="2023-11-14T22:13:20.100">
  <attribute name="gcPolicy" value="-Xgcpolicy:gencon" />
  <attribute name="maxHeapSize" value="0x20000000" />
  <attribute name="gcthreads" value="2" />
  <system>
    <attribute name="physicalMemory" value="1073741824" />
    <attribute name="numCPUs" value="8" />
    <attribute name="numCPUs active" value="2" />
  </system>
</initialized>

<exclusive-start id="2" timestamp="2023-11-14T22:13:21.000" intervalms="900.500">
  <response-info timems="0.124" idlems="0.080" threads="2" lastid="0" lastname="a &lt;b&gt;" />
</exclusive-start>
<sys-start reason="explicit" id="3" timestamp="2023-11-14T22:13:21.000" intervalms="900.600" />
<cycle-start id="4" type="global" contextid="0" timestamp="2023-11-14T22:13:21.000" intervalms="900.700" />
<gc-start id="5" type="global" contextid="4" timestamp="2023-11-14T22:13:21.000">
  <mem-info id="6" free="385392536" total="536870912" percent="71">
    <mem type="nursery" free="14905080" total="134217728" percent="11">
      <mem type="allocate" free="14905080" total="97845248" percent="15" />
      <mem type="survivor" free="0" total="36372480" percent="0" />
    </mem>
    <mem type="tenure" free="370487456" total="402653184" percent="92" />
  </mem-info>
</gc-start>
<gc-op id="7" type="mark" timems="58.569" contextid="4" timestamp="2023-11-14T22:13:21.059">
</gc-op>
<gc-op id="8" type="sweep" timems="3.185" contextid="4" timestamp="2023-11-14T22:13:21.062" />
<gc-end id="9" type="global" contextid="4" durationms="97.189" usertimems="94.176" systemtimems="2.129" timestamp="2023-11-14T22:13:21.097">
  <mem-info id="10" free="455745752" total="536870912" percent="84">
    <mem type="nursery" free="77293000" total="134217728" percent="57">
      <mem type="survivor" free="0" total="36372480" percent="0" />
    </mem>
  </mem-info>
</gc-end>
<cycle-end id="11" type="global" contextid="4" timestamp="2023-11-14T22:13:21.098" />
<sys-end id="12" timestamp="2023-11-14T22:13:21.098" />
<exclusive-end id="13" timestamp="2023-11-14T22:13:21.098" durationms="97.756" />

"#;

/// The moment of `GLOBAL`'s first stamp, ms since 1970.
const BEGIN_MS: i64 = 1_700_000_000_100;

fn placed(text: &str) -> GcLog {
    let wall = WallClock {
        ahead_ns: (BEGIN_MS - 5_000) * 1_000_000,
        set: Vec::new(),
        started_ms: BEGIN_MS - 200,
    };
    let mut builder = GcLogBuilder::new(100).with_wall_clock(Some(wall));
    builder.read(text.as_bytes());
    builder.finish_log()
}

#[test]
fn a_stop_is_a_pause_with_its_kind_cause_heap_and_cpu() {
    let log = read(GLOBAL.as_bytes(), 10);
    assert!(
        log.input.is_gc_log && log.input.is_complete(),
        "{:?}",
        log.input
    );
    assert_eq!(log.input.unknown_lines, 0);
    let header = &log.header;
    assert_eq!(header.collector.map(|c| c.collector_name()), Some("gencon"));
    assert!(header.is_openj9);
    assert_eq!(
        (header.machine.cpus, header.machine.cpus_available),
        (Some(8), Some(2))
    );
    assert_eq!(header.heap_max_bytes, Some(512 << 20));
    let pause = &log.pauses[0];
    assert_eq!(&*pause.name.kind, "Global");
    assert_eq!(pause.name.cause.as_deref(), Some("System.gc()"));
    assert_eq!((log.summary.full, log.summary.stw.count), (1, 1));
    assert_eq!(pause.duration, Duration::from_micros(97_756));
    let heap = pause.heap.expect("it has figures");
    assert_eq!(heap.before, 536_870_912 - 385_392_536 - 36_372_480);
    assert_eq!(heap.after, 536_870_912 - 455_745_752 - 36_372_480);
    assert_eq!(heap.committed, Some(512 << 20));
    let cpu = pause.cpu.expect("it has CPU times").total_cpu();
    assert_eq!(cpu, Duration::from_micros(96_305));
    let safepoint = &log.safepoints[0];
    assert_eq!(safepoint.reaching, Some(Duration::from_micros(124)));
    assert_eq!(safepoint.total, Duration::from_micros(97_880));
    let phases: Vec<&str> = log.summary.phases.iter().map(|(name, _)| name).collect();
    assert_eq!(phases, ["mark", "sweep"]);
}

#[test]
fn the_trials_clock_places_it() {
    let span = placed(GLOBAL).pauses[0].monotonic_span().expect("placed");
    // 5 s after the offset's zero at the first stamp; the stop's stamp is 0.9 s later.
    let begin = 5_900_000_000_u64;
    assert!(span.0.abs_diff(begin) <= 1_000_000, "{span:?}");
    assert_eq!(span.1 - span.0, 97_756_000);
    let elsewhere = GLOBAL.replace("T22:", "T11:");
    let there = placed(&elsewhere).pauses[0].monotonic_span();
    assert_eq!(there, Some(span), "in another time zone");
}

#[test]
fn a_log_that_is_cut_gives_what_it_has() {
    for end in 0..GLOBAL.len() {
        let log = read(&GLOBAL.as_bytes()[..end], 10);
        // The duration stands last.
        let whole = GLOBAL.rfind('"').expect("the last attribute") + 1;
        assert_eq!(log.summary.stw.count, u64::from(end >= whole), "{end}");
    }
    let cut = GLOBAL.find("<cycle-end").expect("it is there");
    let log = read(&GLOBAL.as_bytes()[..cut], 10);
    assert_eq!(log.input.unfinished_pauses, 1);
    let begin = GLOBAL.find("<gc-op").expect("it is there");
    let log = read(&GLOBAL.as_bytes()[begin..], 10);
    assert!(log.input.is_gc_log, "{:?}", log.input);
}

#[test]
fn two_jvms_in_one_file_are_two_lives_a_rotation_is_none() {
    let two = read([GLOBAL, GLOBAL].concat().as_bytes(), 10);
    assert_eq!((two.summary.jvm_starts, two.summary.stw.count), (2, 2));
    let later = GLOBAL.replace("22:13:", "22:14:");
    let rotated = later.replace("<initialized id=\"1\"", "<initialized id=\"14\"");
    let one = read([GLOBAL, &rotated].concat().as_bytes(), 10);
    assert_eq!((one.summary.jvm_starts, one.summary.stw.count), (1, 2));
}

#[test]
fn work_beside_the_application_and_its_end() {
    let text = r#"<verbosegc version="x">
<concurrent-kickoff id="2" timestamp="2023-11-14T22:13:21.000">
</concurrent-kickoff>
<exclusive-start id="3" timestamp="2023-11-14T22:13:21.500" intervalms="1.000">
</exclusive-start>
<concurrent-global-final id="4" contextid="1" timestamp="2023-11-14T22:13:21.501" intervalms="1.0" >
</concurrent-global-final>
<gc-start id="5" type="global" contextid="1" timestamp="2023-11-14T22:13:21.501">
</gc-start>
<exclusive-end id="6" timestamp="2023-11-14T22:13:21.510" durationms="10.000" />
"#;
    let log = read(text.as_bytes(), 10);
    assert_eq!(&*log.pauses[0].name.kind, "Global Final");
    assert_eq!(log.summary.full, 0);
    let (name, tally) = log.summary.concurrent.iter().next().expect("one");
    assert_eq!(
        (name, tally.total.as_millis()),
        ("Concurrent global mark", 501)
    );
}

#[test]
fn xml_of_another_program_is_no_gc_log() {
    let log = read(
        &b"<html>\n<body timestamp=\"2023-11-14T22:13:21.000\">\n</html>\n"[..],
        10,
    );
    assert!(!log.input.is_gc_log);
    assert_eq!(log.input.unknown_lines, 3);
}
