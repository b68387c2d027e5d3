//! The same with a real JVM: what it sees of its limits, its log, its threads when it hangs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use loadline_analysis::record::{Evidence, SecondEvidence, SqueezeEnd, TrialPhase};
use loadline_cgroup::{CgroupLayout, CgroupLimits, ControlGroup, GroupName};
use loadline_load::{LoadModel, LoadPlan};
use loadline_protocol::log::{ChunkContent, EventLogReader};
use loadline_protocol::{LoadPhase, MemoryStudy, Readiness, StudyGoal, TrialEnding};
use loadline_sizing::{Bytes, Cpus};

use crate::lab::{Lab, PORT, Spec, load};
use crate::runner::{self, Case};
use crate::squeezes::copy_jdk;

pub const CASES: [Case; 9] = [
    (
        "jvm_sees_what_it_sees_in_a_container",
        jvm_sees_what_it_sees_in_a_container,
    ),
    (V1_ALONE, jvm_on_cgroup_v1_alone),
    ("jvm_beside_another", jvm_beside_another),
    ("jvm_log_is_collected", jvm_log_is_collected),
    ("jvm_classes_are_counted", jvm_classes_are_counted),
    (HANGS, jvm_that_hangs_is_dumped),
    (
        "jvm_with_serial_is_squeezed_to_a_wall",
        jvm_with_serial_is_squeezed_to_a_wall,
    ),
    (ZGC, jvm_with_zgc_is_squeezed_to_a_wall),
    (PARTS, jvm_parts_add_up),
];

pub const HANGS: &str = "jvm_that_hangs_is_dumped";
pub const V1_ALONE: &str = "jvm_on_cgroup_v1_alone";

pub const PARTS: &str = "jvm_parts_add_up";

/// User-mode Linux has too few addresses for its heap.
pub const ZGC: &str = "jvm_with_zgc_is_squeezed_to_a_wall";

/// Serves, keeps some objects and reads classes; says nothing.
const SERVER: &str = r#"
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

public class Server {
    static final byte[][] KEPT = new byte[10][1 << 20];
    public static void main(String[] arguments) throws Exception {
        var port = Integer.parseInt(arguments[0]);
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 64);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", exchange -> {
            var text = new StringBuilder();
            for (int i = 0; i < 200; i++) {
                text.append(String.format("%d ", i));
            }
            var bytes = text.toString().getBytes();
            exchange.sendResponseHeaders(200, bytes.length);
            exchange.getResponseBody().write(bytes);
            exchange.close();
        });
        server.start();
    }
}
"#;

/// Says what it sees; told `once` it ends, with another argument it listens and never answers.
const PROGRAM: &str = r#"
public class Probe {
    public static void main(String[] arguments) throws Exception {
        Runtime runtime = Runtime.getRuntime();
        System.out.println("cpus " + runtime.availableProcessors());
        System.out.println("heap " + (runtime.maxMemory() >> 20));
        System.gc();
        System.out.println("ready");
        if (arguments.length > 0 && arguments[0].equals("once")) {
            return;
        }
        if (arguments.length > 0) {
            var server = new java.net.ServerSocket(Integer.parseInt(arguments[0]));
            while (true) {
                server.accept();
                Thread.sleep(3600_000);
            }
        }
        Thread.sleep(3600_000);
    }
}
"#;

/// The `java` on this machine's path, if it can compile.
pub fn java() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let java = std::env::split_paths(&path).map(|directory| directory.join("java"));
    let java = java.filter_map(|java| std::fs::canonicalize(java).ok());
    java.into_iter()
        .find(|java| java.parent().is_some_and(|bin| bin.join("javac").is_file()))
}

/// Every HotSpot of this machine: that one, and those where distributions put them.
pub fn javas() -> Vec<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten();
    let hotspot = installed.flatten().map(|home| home.path());
    let hotspot = hotspot.filter(|home| !home.join("lib/j9vm").exists());
    let installed = hotspot.map(|home| home.join("bin/java"));
    let all = java().into_iter().chain(installed);
    let real: BTreeSet<PathBuf> = all.filter_map(|j| std::fs::canonicalize(j).ok()).collect();
    real.into_iter().collect()
}

/// A spec for the program, compiled into the lab's directory. `None`: this machine has no JDK.
fn spec(lab: &mut Lab, arguments: &[&str]) -> Spec {
    let java = java().expect("the runner has looked");
    let classes = lab.scratch.path().join("classes");
    compile(&java, &classes, "Probe", PROGRAM);
    let mut spec = lab.spec(&[]);
    spec.command = [
        &*java.display().to_string(),
        "-Xlog:gc*,safepoint:file=/tmp/gc.log:tn,u,l,tg",
        "-XX:-UsePerfData",
        "-cp",
        &classes.display().to_string(),
        "Probe",
    ]
    .iter()
    .chain(arguments)
    .map(|argument| (*argument).to_owned())
    .collect();
    spec.gc_log = Some("/tmp/gc.log".into());
    spec.configuration.memory = Some(Bytes::from_mib(256));
    spec.configuration.cpu = Some(Cpus::from_millis(900));
    spec.readiness = Readiness::LogLine {
        contains: "ready".to_owned(),
    };
    spec
}

/// Two JVMs of one trial: each sees its own limit, and has its own log.
fn jvm_beside_another() {
    let mut lab = Lab::new();
    let mut spec = spec(&mut lab, &[]);
    spec.configuration.instances = 2;
    spec.configuration.cpu = Some(Cpus::from_millis(450));
    let trial = lab.run(&spec, None);
    assert!(trial.start.ready.is_some());
    let evidence = trial.evidence;
    assert_eq!(evidence.instances.len(), 2, "{:?}", evidence.failure);
    let heap = |i: usize| evidence.instances[i].gc.as_ref().and_then(|gc| gc.heap_max);
    assert_eq!(heap(0), heap(1));
    // A quarter of each one's own limit, or half of a small limit; if the JVM cannot see it (JDK 17
    // on a kernel that lists no cpuset), the trial reports that.
    let is_own = heap(0).is_some_and(|h| h <= Bytes::from_mib(128));
    let warnings = &evidence.warnings;
    let says_so = warnings
        .iter()
        .any(|w| w.contains("did not see its limits"));
    assert_eq!(says_so, !is_own, "{:?}, {warnings:#?}", heap(0));
    let gc = evidence.gc.expect("both wrote a log");
    let own = |i: usize| evidence.instances[i].gc.as_ref().map_or(0, |gc| gc.pauses);
    assert!(own(0) > 0 && own(1) > 0);
    assert_eq!(gc.pauses, own(0) + own(1));
    assert!(evidence.start.pss <= evidence.start.rss);
    lab.assert_clean();
}

fn compile(java: &Path, classes: &Path, name: &str, program: &str) {
    use std::os::unix::fs::PermissionsExt;
    let class = classes.join(format!("{name}.class"));
    if class.is_file() {
        return;
    }
    std::fs::create_dir_all(classes).expect("a directory");
    let source = classes.join(format!("{name}.java"));
    std::fs::write(&source, program).expect("a file");
    let javac = java.with_file_name("javac");
    // Any JDK here shall be able to run it.
    let done = Command::new(javac)
        .args(["--release", "11"])
        .arg(&source)
        .status();
    assert!(done.expect("it runs").success());
    for path in [classes.to_owned(), class] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("own");
    }
}

/// Every JDK here, in a trial and in a cgroup with the same limits and nothing else around it: both
/// must see the same. If that is not the limit, the trial must report it.
fn jvm_sees_what_it_sees_in_a_container() {
    let mut lab = Lab::new();
    for java in javas() {
        compare(&mut lab, &java, None);
        if kernel_lists_cpuset() {
            continue;
        }
        if let Some(listed) = cpuset_listed(lab.scratch.path()) {
            // As on the kernels of most machines: then every JDK must see its limit.
            assert!(compare(&mut lab, &java, Some(&listed)) < 256);
        } else {
            println!("no C compiler here: JDKs before 25 were only seen blind");
        }
    }
    lab.assert_clean();
}

/// The heap that a JVM chooses, MiB.
fn compare(lab: &mut Lab, java: &Path, preload: Option<&Path>) -> u64 {
    let mut spec = spec(lab, &[]);
    spec.command[0] = java.display().to_string();
    if let Some(library) = preload {
        // It is next to the classes, which the application can reach because the command names
        // them.
        let path = library.display().to_string();
        spec.env.insert("LD_PRELOAD".to_owned(), path);
    }
    let bare = bare(&spec);
    let trial = lab.run(&spec, None);
    let lines = &trial.evidence.last_output;
    let is_ready = trial.start.ready.is_some();
    assert!(is_ready, "{lines:#?}");
    let (heap, in_bare) = (fact(lines, "heap "), fact(&bare, "heap "));
    assert_eq!(heap, in_bare, "{} in a trial and outside", java.display());
    let warnings = &trial.evidence.warnings;
    let says_so = warnings
        .iter()
        .any(|w| w.contains("did not see its limits"));
    // Half of a limit below 250 MiB, a quarter of one above: anything else is the machine's.
    assert_eq!(says_so, heap >= 256, "{heap} MiB, {warnings:#?}");
    if heap < 256 {
        assert_eq!(fact(lines, "cpus "), 1);
    }
    assert_eq!(trial.evidence.exit.code, Some(143));
    let preloaded = preload.map_or("", |_| ", cpuset listed");
    println!("{} sees {heap} MiB of 256{preloaded}", java.display());
    heap
}

/// What the same command says in a plain cgroup with the same limits, as a container has it.
fn bare(spec: &Spec) -> Vec<String> {
    let layout =
        CgroupLayout::detect(Path::new("/sys/fs/cgroup"), Path::new("/proc")).expect("cgroups");
    let name = GroupName::new(Path::new("/proc"), "bare").expect("a name");
    let group = ControlGroup::create_group(&layout, &name.to_string()).expect("a group");
    let limits = CgroupLimits {
        cpu_quota: spec.configuration.cpu,
        cpu_period: spec.configuration.cpu_period,
        memory: spec.configuration.memory,
        ..CgroupLimits::default()
    };
    group.apply_limits(&limits).expect("limits");
    let join = r#"while [ "$1" != join ]; do echo 0 > "$1"; shift; done; shift; exec "$@""#;
    let options = |word: &&String| !word.starts_with("-Xlog");
    let output = Command::new("sh")
        .args(["-c", join, "sh"])
        .args(group.join_files())
        .arg("join")
        .args(spec.command.iter().filter(options))
        .arg("once")
        .envs(&spec.env)
        .output()
        .expect("sh is there");
    group
        .remove_dirs(Duration::from_secs(10))
        .expect("it is empty");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    text.lines().map(str::to_owned).collect()
}

fn fact(lines: &[String], name: &str) -> u64 {
    let value = lines.iter().find_map(|line| line.strip_prefix(name));
    let value = value.and_then(|value| value.parse().ok());
    value.unwrap_or_else(|| panic!("no {name}in {lines:#?}"))
}

fn kernel_lists_cpuset() -> bool {
    let table = std::fs::read_to_string("/proc/cgroups").unwrap_or_default();
    table.lines().any(|line| line.starts_with("cpuset"))
}

/// Builds the library that lists cpuset in /proc/cgroups.
fn cpuset_listed(scratch: &Path) -> Option<PathBuf> {
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/uml/cpuset_listed.c"
    );
    let library = scratch.join("classes/cpuset_listed.so");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library);
    let built = compiler.arg(source).arg("-ldl").status();
    built
        .is_ok_and(|status| status.success())
        .then_some(library)
}

/// The same without a v2 mount besides v1.
fn jvm_on_cgroup_v1_alone() {
    let unified = Path::new("/sys/fs/cgroup/unified");
    if !unified.join("cgroup.procs").exists() {
        println!("SKIP {V1_ALONE}: this machine is not hybrid");
        return;
    }
    let alone = r#"mount --make-rprivate / && umount "$1" && exec "$2" jvm_sees_what"#;
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", alone, "sh"])
        .arg(unified)
        .arg(std::env::current_exe().expect("this program"))
        .output()
        .expect("unshare is there");
    // Its own lines would be counted again.
    let text = crate::uml::nested(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{said}"
    );
}

fn jvm_log_is_collected() {
    let mut lab = Lab::new();
    let spec = spec(&mut lab, &[]);
    let evidence = lab.run(&spec, None).evidence;
    let gc = evidence.gc.expect("the log is read");
    assert_eq!((gc.collector.as_str(), gc.full_gcs), ("Serial", 1));
    assert_eq!(gc.pause_spans_ns.len(), 1, "{gc:?}");
    let log = EventLogReader::new(std::fs::File::open(&spec.log).expect("its log"));
    let kept =
        std::io::read_to_string(log.join_chunks(ChunkContent::GcLog, 0)).expect("it is whole");
    assert!(kept.contains("Pause Full"), "it is kept: {kept}");
    assert_eq!(
        evidence.warnings.iter().find(|w| w.contains("GC log")),
        None
    );
    lab.assert_clean();
}

/// Every JDK here keeps its counters for a user that the machine has no name for, and the share of
/// classes from the JDK's own archive is in the record.
fn jvm_classes_are_counted() {
    let mut lab = Lab::new();
    for java in javas() {
        let mut spec = spec(&mut lab, &[]);
        spec.command[0] = java.display().to_string();
        spec.command.retain(|word| word != "-XX:-UsePerfData");
        let trial = lab.run(&spec, None);
        let start = trial.start;
        let counted = start.classes.zip(start.classes_archived);
        let (all, archived) = counted.unwrap_or_else(|| panic!("{java:?}: {start:#?}"));
        // A JVM that says hello loads some 450; without an archive not one is from it.
        assert!(
            all > 300 && archived <= all,
            "{java:?}: {archived} of {all}"
        );
        let has_archive = java
            .ancestors()
            .nth(2)
            .is_some_and(|home| home.join("lib/server/classes.jsa").is_file());
        assert_eq!(
            archived > all / 2,
            has_archive,
            "{java:?}: {archived} of {all}"
        );
        println!("{}: {archived} of {all} classes archived", java.display());
    }
    lab.assert_clean();
}

/// The server with a heap of 64 MiB that is touched as a whole, and the phases of a study.
pub fn studied(lab: &mut Lab, with_java: &Path, options: &[&str], goal: StudyGoal) -> Evidence {
    let classes = lab.scratch.path().join("classes");
    compile(
        &java().expect("the runner has looked"),
        &classes,
        "Server",
        SERVER,
    );
    let mut spec = lab.spec(&[]);
    let fixed = ["-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch"];
    let log = "-Xlog:gc*,safepoint:file=/tmp/gc.log:tn,u,l,tg";
    let (java, classes) = (
        with_java.display().to_string(),
        classes.display().to_string(),
    );
    let port = PORT.to_string();
    let words = [java.as_str()]
        .into_iter()
        .chain(fixed)
        .chain(options.iter().copied());
    let words = words.chain([log, "-cp", &classes, "Server", &port]);
    spec.command = words.map(str::to_owned).collect();
    spec.gc_log = Some("/tmp/gc.log".into());
    spec.configuration.memory = Some(Bytes::from_mib(320));
    spec.configuration.cpu = Some(Cpus::from_whole(1));
    let judged = load(40.0, Duration::from_secs(3));
    let with = |phase, model| LoadPhase {
        phase,
        plan: LoadPlan {
            model,
            ..judged.plan.clone()
        },
    };
    let duration = Duration::from_secs(6);
    spec.load = vec![
        judged.clone(),
        with(TrialPhase::Age, LoadModel::ClosedFor { duration }),
    ];
    if goal == StudyGoal::Wall {
        let long = judged.plan.model.repeated_for(Duration::from_secs(90));
        spec.load.push(with(TrialPhase::Squeeze, long));
        spec.load
            .push(with(TrialPhase::Again, judged.plan.model.clone()));
    }
    spec.memory_study = Some(MemoryStudy {
        burst_requests: 3_000,
        goal,
    });
    match spec.start().end() {
        Some(TrialEnding::Measured(evidence)) => *evidence,
        other => panic!("it was not measured: {other:?}"),
    }
}

fn jvm_with_serial_is_squeezed_to_a_wall() {
    let mut lab = Lab::new();
    let java = java().expect("the runner has looked");
    squeeze(
        &mut lab,
        &java,
        &["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
    );
    lab.assert_clean();
}

fn jvm_with_zgc_is_squeezed_to_a_wall() {
    let mut lab = Lab::new();
    let java = java().expect("the runner has looked");
    squeeze(&mut lab, &java, &["-XX:+UseZGC"]);
    lab.assert_clean();
}

fn squeeze(lab: &mut Lab, java: &Path, options: &[&str]) {
    let own = if runner::is_guest() {
        // Its only disk is in memory.
        java.to_owned()
    } else {
        copy_jdk(java, lab.scratch.path())
    };
    let evidence = studied(lab, &own, options, StudyGoal::Wall);
    assert_eq!(evidence.failure, None);
    let squeeze = evidence.squeeze.as_ref().expect("it was ordered");
    for step in &squeeze.steps {
        println!(
            "{:5.1} MiB, unreclaimable {:5.1}, files {:5.1}, {:7.0} re-reads/s, pressure {:.2}, {:?} of {:?}",
            step.limit.as_mib(),
            step.unreclaimable.as_mib(),
            step.file.unwrap_or_default().as_mib(),
            step.refaults_per_second,
            step.full_pressure.unwrap_or_default(),
            step.achieved,
            step.offered,
        );
    }
    println!("{:?}, then {:?}", squeeze.end, squeeze.limit_after);
    let is_wall = matches!(
        squeeze.end,
        SqueezeEnd::Storm | SqueezeEnd::Pressure | SqueezeEnd::Busy | SqueezeEnd::NoRoom
    );
    let told = (&evidence.start, &evidence.exit, &evidence.last_output);
    assert!(is_wall, "{:?}, {told:#?}", squeeze.end);
    assert_eq!(evidence.cgroup.oom_kills, Some(0));
    assert!(!evidence.exit.before_stop, "{:?}", evidence.exit);
    let steps = squeeze.steps.iter().take_while(|step| step.is_calm());
    let calm = steps.min_by_key(|step| step.limit).expect("there was room");
    assert!(calm.limit < Bytes::from_mib(320) && calm.limit > calm.unreclaimable);
    assert!(squeeze.burst_requests > 0 && squeeze.aged.is_some());
    // The judged part is the measure phase alone; after it came the same load once more.
    let measure = evidence
        .phases
        .iter()
        .find(|span| span.phase == TrialPhase::Measure);
    assert_eq!(evidence.judged_until(), measure.expect("it was judged").end);
    assert!(evidence.cgroup.file_refaults < Some(10_000));
    let again = evidence
        .load
        .iter()
        .find(|load| load.phase == TrialPhase::Again);
    let after = squeeze.limit_after.expect("there was a limit for it");
    let told = (&evidence.phases, &evidence.warnings, &evidence.last_output);
    assert!(again.is_some_and(|load| load.ok > 0), "{told:#?}");
    assert!(after < Bytes::from_mib(320) && after > calm.limit);
}

/// On every JDK and with every kind of heap the parts are what the kernel charges, and a start that is
/// not squeezed says what a collection leaves.
fn jvm_parts_add_up() {
    let mut lab = Lab::new();
    for java in javas() {
        for collector in ["-XX:+UseSerialGC", "-XX:+UseG1GC", "-XX:+UseZGC"] {
            let evidence = studied(&mut lab, &java, &[collector], StudyGoal::LiveSet);
            let parts = evidence.memory.as_ref().expect("it was read");
            println!("{} {collector}: {parts:?}", java.display());
            let heap = parts.heap.as_mib();
            assert!((63.0..66.0).contains(&heap), "{collector}: {heap}");
            let live = parts.live_set.expect("it was asked").as_mib();
            assert!((10.0..20.0).contains(&live), "{collector}: {live}");
            // Memory may grow by megabytes between the reading and the next second.
            let is_near = |s: &&SecondEvidence| s.at_ns.abs_diff(parts.at_ns) < 1_500_000_000;
            let near = evidence.seconds.iter().filter(is_near);
            let anon: Vec<f64> = near.filter_map(|s| Some(s.anon?.as_mib())).collect();
            let shared = if collector.contains('Z') { 64.0 } else { 0.0 };
            let told = parts.unreclaimable().as_mib();
            let far = |anon: &f64| told / (anon + shared + parts.kernel.as_mib()) - 1.0;
            assert!(
                anon.iter().any(|anon| far(anon).abs() < 0.02),
                "{told} of {anon:?}"
            );
        }
    }
    lab.assert_clean();
}

fn jvm_that_hangs_is_dumped() {
    let mut lab = Lab::new();
    let mut spec = spec(&mut lab, &[&PORT.to_string()]);
    spec.readiness = Readiness::Http {
        port: PORT,
        path: "/".to_owned(),
    };
    spec.start_deadline = Duration::from_secs(20);
    spec.stop_grace = Duration::from_secs(2);
    let evidence = lab.run(&spec, None).evidence;
    assert_eq!(evidence.start.ready, None);
    let dump = evidence.thread_dump.join("\n");
    assert!(
        dump.contains("Full thread dump") && dump.contains("Probe.main"),
        "{dump}"
    );
    assert!(evidence.last_output.iter().any(|line| line == "ready"));
    assert!(
        evidence
            .last_output
            .iter()
            .all(|line| !line.contains("thread dump"))
    );
    assert_eq!(evidence.exit.code, Some(143));
    lab.assert_clean();
}
