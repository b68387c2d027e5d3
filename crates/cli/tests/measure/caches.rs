//! `loadline cache` with a real JVM: a cache that is built, used and verified, and every way in
//! which it cannot be.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount, mount_bind, mount_remount};

use crate::disk::Mounted;
use crate::lab::Lab;
use crate::process::Call;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 8] = [
    (
        "a_cache_is_built_used_and_verified",
        a_cache_is_built_used_and_verified,
    ),
    (
        "a_shared_class_cache_is_built_sized_and_used",
        a_shared_class_cache_is_built_sized_and_used,
    ),
    (
        "an_experiment_builds_its_caches_once",
        an_experiment_builds_its_caches_once,
    ),
    (
        "a_read_only_directory_takes_no_cache",
        a_read_only_directory_takes_no_cache,
    ),
    ("a_full_disk_takes_no_cache", a_full_disk_takes_no_cache),
    (
        "what_is_never_ready_gives_no_cache",
        what_is_never_ready_gives_no_cache,
    ),
    (
        "jars_inside_a_jar_are_told_before_a_training_and_extracted",
        jars_inside_a_jar_are_told_before_a_training_and_extracted,
    ),
    (
        "the_dockerfile_stage_builds_a_cache",
        the_dockerfile_stage_builds_a_cache,
    ),
];

/// The application, in the lab's directory; `Err` is why it is not there.
fn ping(lab: &Lab) -> Result<PathBuf, String> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/workloads/ping.jar");
    if !built.is_file() {
        return Err("no build/workloads/ping.jar (make workloads)".to_owned());
    }
    let java = std::process::Command::new("java").arg("-version").output();
    if java.is_err() {
        return Err("no java here".to_owned());
    }
    let jar = lab.path().join("ping.jar");
    fs::copy(built, &jar).expect("a copy");
    Ok(jar)
}

/// One pair of starts, whatever else runs on this machine.
fn cache(lab: &Lab, flags: &[&str], port: u16) -> Call {
    let warm = format!("http://localhost:{port}/");
    lab.call("cache")
        .args(&["--wait", "--accept-noise", "--runs=1", "--warm", &warm])
        .args(flags)
        .args(&["--", "java", "-jar", "ping.jar"])
}

macro_rules! ping_or_skip {
    ($lab:expr) => {
        match ping($lab) {
            Ok(jar) => jar,
            Err(reason) => return Some(reason),
        }
    };
}

fn a_cache_is_built_used_and_verified() -> Outcome {
    let lab = Lab::new();
    let jar = ping_or_skip!(&lab);
    // Names that the application's user may have linked to a file of root's.
    let victim = lab.path().join("victim");
    fs::write(&victim, "root's").expect("a file");
    for name in [
        "ping.jsa.part",
        "ping.jsa.manifest.part",
        ".loadline-cache-probe",
        "ping.jsa",
    ] {
        symlink(&victim, lab.path().join(name)).expect("a link");
    }
    let ended = cache(&lab, &["--kind=appcds", "--full"], 8080)
        .into_end()
        .expect_code(0);
    ended.prints(&[
        "ping.jsa",
        "It fits JDK build",
        "come from it and the JDK's archive",
        "What does a start cost?",
    ]);
    assert_eq!(fs::read_to_string(&victim).expect("it is there"), "root's");
    let archive = jar.with_extension("jsa");
    assert!(!archive.is_symlink());
    let manifest = fs::read_to_string(lab.path().join("ping.jsa.manifest")).expect("a manifest");
    let size = archive.metadata().expect("an archive").len();
    for line in ["kind appcds", &format!("size {size}"), "cpu ", " ping.jar"] {
        assert!(manifest.contains(line), "{line}\n{manifest}");
    }
    let result = lab.result("last");
    let trials = result["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 2, "{trials:?}");
    // Built again, in its place; this time for a program.
    let again = cache(&lab, &["--kind=appcds", "--json"], 8080).into_end();
    crate::forms::assert_result(&again.expect_code(0).stdout);
    None
}

fn a_shared_class_cache_is_built_sized_and_used() -> Outcome {
    let lab = Lab::new();
    ping_or_skip!(&lab);
    if !Path::new("/usr/lib/jvm/openj9-25/bin/java").is_file() {
        return Some("no OpenJ9 25 in /usr/lib/jvm/openj9-25".to_owned());
    }
    let ended = cache(&lab, &["--kind=scc", "--jdk=openj9-25"], 8080).into_end();
    let ended = ended.expect_code(0);
    let ended = ended.prints(&["with gencon", "loadline-launch finds it", "come from it."]);
    assert_eq!(ended.stderr.matches("training scc").count(), 2, "{ended}");
    let files = fs::read_dir(lab.path().join("scc")).expect("a directory");
    let mut files: Vec<PathBuf> = files.flatten().map(|entry| entry.path()).collect();
    files.sort();
    assert_eq!(files.len(), 2, "the cache and its manifest: {files:?}");
    let size = files[0].metadata().expect("a cache").len();
    assert!(size < 40 << 20, "rebuilt at the size that was full: {size}");
    let manifest = fs::read_to_string(&files[1]).expect("a manifest");
    for line in ["kind scc", &format!("size {size}"), " ping.jar"] {
        assert!(manifest.contains(line), "{line}\n{manifest}");
    }
    None
}

fn an_experiment_builds_its_caches_once() -> Outcome {
    let lab = Lab::new();
    ping_or_skip!(&lab);
    let experiment = r#"
slo = "start<60s"
[app]
command = ["java", "-jar", "ping.jar"]
[load]
url = "http://localhost:8080/"
requests = 5
warm-up = "0s"
[run]
repeats = 2
accept-noise = true
[[factor]]
name = "classes"
levels = [{ label = "without" }, { label = "with", cache = "appcds", cache-requests = 3 }]
"#;
    fs::write(lab.path().join("exp.toml"), experiment).expect("a file");
    let ended = lab
        .call("run")
        .args(&["--wait", "--full", "exp.toml"])
        .into_end();
    let ended = ended.expect_code(0);
    assert_eq!(
        ended.stderr.matches("training appcds").count(),
        1,
        "{ended}"
    );
    ended.prints(&["appcds, 3 requests", "2 pairs"]);
    None
}

fn a_read_only_directory_takes_no_cache() -> Outcome {
    let lab = Lab::new();
    ping_or_skip!(&lab);
    let out = lab.path().join("out");
    fs::create_dir(&out).expect("a directory");
    mount_bind(&out, &out).expect("a mount");
    let _mounted = Mounted(out.clone());
    mount_remount(&out, MountFlags::BIND | MountFlags::RDONLY, "").expect("it becomes read-only");
    let ended = cache(&lab, &["-o", "out"], 8080).into_end().expect_code(3);
    ended.says(&[
        "cannot write in",
        "out",
        "Read-only",
        "hint: the directory must be writable: -o DIR",
    ]);
    assert!(
        !lab.state().join("loadline.db").exists(),
        "something was started"
    );
    None
}

fn a_full_disk_takes_no_cache() -> Outcome {
    let lab = Lab::new();
    ping_or_skip!(&lab);
    let out = lab.path().join("out");
    fs::create_dir(&out).expect("a directory");
    mount("tmpfs", &out, "tmpfs", MountFlags::empty(), c"size=512k").expect("a mount");
    let _mounted = Mounted(out.clone());
    let ended = cache(&lab, &["-o", "out"], 8080).into_end().expect_code(3);
    ended.says(&[
        "cannot write",
        "out/ping.",
        "No space left",
        "hint: free some space",
    ]);
    let left = fs::read_dir(&out).expect("a directory").count();
    assert_eq!(left, 0, "something half written was left");
    None
}

fn what_is_never_ready_gives_no_cache() -> Outcome {
    let lab = Lab::new();
    let jar = ping_or_skip!(&lab);
    // It listens on 8080, so no answer ever comes there.
    let ended = cache(&lab, &["--start-deadline=10s"], 8081)
        .into_end()
        .expect_code(4);
    ended.says(&[
        "the training run was never ready",
        "refused",
        "ping is ready on port 8080",
        "hint: ",
    ]);
    let made = ["jsa", "aot"].map(|e| jar.with_extension(e).exists());
    assert_eq!(made, [false, false]);
    None
}

/// Packs the application as Spring Boot's plugin does: a launcher that is not there starts it from
/// jars inside the jar.
fn pack(lab: &Lab, jar: &Path) {
    let boot = lab.path().join("boot");
    for directory in ["BOOT-INF/classes", "BOOT-INF/lib"] {
        fs::create_dir_all(boot.join(directory)).expect("a directory");
    }
    fs::copy(jar, boot.join("BOOT-INF/lib/ping-1.jar")).expect("a copy");
    let manifest =
        "Main-Class: org.springframework.boot.loader.launch.JarLauncher\nStart-Class: Ping\n";
    fs::write(lab.path().join("manifest"), manifest).expect("a file");
    let words = "--create --no-compress --file ping.jar --manifest manifest -C boot .";
    let jar = std::process::Command::new("jar")
        .args(words.split(' '))
        .current_dir(lab.path())
        .status();
    assert!(jar.expect("a JDK has it").success());
}

fn jars_inside_a_jar_are_told_before_a_training_and_extracted() -> Outcome {
    let lab = Lab::new();
    let jar = ping_or_skip!(&lab);
    pack(&lab, &jar);
    // Its launcher is missing, so its training fails: only the messages before that count.
    let ended = cache(&lab, &["--start-deadline=10s"], 8080).into_end();
    ended.says(&[
        "warning: ",
        "ping.jar contains the jars of its libraries",
        "hint: `loadline cache --extract`",
        "the training run was never ready",
    ]);
    let extract = ["--extract", "--kind=appcds"];
    let ended = cache(&lab, &extract, 8080).into_end().expect_code(0);
    let ended = ended
        .says(&["extracted ping.jar: ping/ping.jar and its libraries in lib next to it, 1 files"]);
    ended.prints(&[
        "ping/ping.jsa",
        "and the 2 files of the class path",
        "come from it and the JDK's archive",
    ]);
    assert!(lab.path().join("ping/lib/ping-1.jar").is_file());
    None
}

/// What an image build runs, with this machine's paths: no loadline, no curl, bash and java alone.
fn the_dockerfile_stage_builds_a_cache() -> Outcome {
    let lab = Lab::new();
    let jar = ping_or_skip!(&lab);
    let archive = lab.path().join("it's here.jsa");
    let training = |port: u16, option: &str| {
        let option = format!("{option}={}", archive.display());
        let command = ["java", &option, "-jar", &jar.display().to_string()].map(str::to_owned);
        let mut command = Vec::from(command);
        command.push(format!("--port={port}"));
        let file = archive.display().to_string();
        let path = "/health".to_owned();
        let ready = loadline_report::emit::ReadinessCheck::Http { port, path };
        let script = loadline_report::emit::cache_script(&command, &ready, 20, &file);
        let bash = ["-euo", "pipefail", "-c", &script];
        let output = std::process::Command::new("bash").args(bash).output();
        output.expect("bash runs")
    };
    let output = training(free_port(), "-XX:ArchiveClassesAtExit");
    assert!(output.status.success(), "{output:?}");
    assert!(archive.is_file(), "{output:?}");
    fs::remove_file(&archive).expect("it is there");
    // An option that ends the JVM at once, and an option that writes nothing.
    let output = training(free_port(), "-XX:NoSuchOption");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        !output.status.success() && said.contains("ended before it was ready"),
        "{output:?}"
    );
    let output = training(free_port(), "-Dno.such.property");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        !output.status.success() && said.contains("wrote no cache"),
        "{output:?}"
    );
    None
}

/// A port that is free at this moment.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}
