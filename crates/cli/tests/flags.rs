//! Flags that mean the same of every command, tried on commands that need no JVM.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const RECORD: &str = "../../records/2026-11-20-spring-web-size/result.json.gz";
const PREDICT: [&str; 7] = ["predict", "--memory", "512Mi", "--cpu", "1", "--jdk", "17"];

fn loadline(place: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(arguments)
        .current_dir(place)
        .env("LOADLINE_TEST_SECRET", "hunter22")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // A command that does not read its input closes it.
    let _ = child.stdin.take().expect("it is piped").write_all(input);
    child.wait_with_output().expect("it ends")
}

fn record() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(RECORD);
    fs::read(path).expect("the record is there")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn what_is_printed_goes_into_the_file_that_is_named() {
    let place = tempfile::tempdir().expect("a directory");
    let printed = loadline(place.path(), &PREDICT, b"");
    let mut arguments = PREDICT.to_vec();
    arguments.extend(["-o", "predicted.txt"]);
    let kept = loadline(place.path(), &arguments, b"");
    assert_eq!(kept.status.code(), Some(0), "{}", text(&kept.stderr));
    assert!(kept.stdout.is_empty(), "{}", text(&kept.stdout));
    let file = fs::read(place.path().join("predicted.txt")).expect("it is written");
    assert_eq!(text(&file), text(&printed.stdout));
}

#[test]
fn a_result_comes_from_standard_input_and_its_report_goes_to_standard_output() {
    let place = tempfile::tempdir().expect("a directory");
    let shown = loadline(place.path(), &["show", "-"], &record());
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    assert!(text(&shown.stderr).contains("all of it"));
    let report = loadline(place.path(), &["report", "-", "-o", "-"], &record());
    assert!(text(&report.stdout).starts_with("<!"), "it is the report");
    assert!(report.stderr.is_empty(), "{}", text(&report.stderr));
    let made = fs::read_dir(place.path()).expect("it is there").count();
    assert_eq!(made, 0, "no file is written");
}

#[test]
fn quiet_leaves_the_answer_only() {
    let place = tempfile::tempdir().expect("a directory");
    let loud = loadline(place.path(), &["show", "-"], &record());
    let quiet = loadline(place.path(), &["-q", "show", "-"], &record());
    let behind = loadline(place.path(), &["show", "-q", "-"], &record());
    assert_eq!(loud.stdout, quiet.stdout);
    assert!(quiet.stderr.is_empty(), "{}", text(&quiet.stderr));
    assert_eq!(behind.stderr, quiet.stderr);
    let both = loadline(place.path(), &["-q", "-v", "show", "-"], &record());
    assert_eq!(both.status.code(), Some(2), "{}", text(&both.stderr));
}

#[test]
fn an_experiment_and_a_log_come_from_standard_input() {
    let place = tempfile::tempdir().expect("a directory");
    let ended = loadline(place.path(), &["run", "-"], b"sloo = 1\n");
    let said = text(&ended.stderr);
    assert!(said.contains("did you mean `slo`?"), "{said}");
    let log = "[0.011s][info][gc] Using Serial\n\
               [0.512s][info][gc] GC(0) Pause Young (Allocation Failure) 8M->2M(30M) 3.012ms\n";
    let ended = loadline(place.path(), &["gc", "-"], log.as_bytes());
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert!(text(&ended.stdout).contains("Serial"));
}

/// What `plan` says, with these words behind it.
fn planned(more: &[&str]) -> (Option<i32>, String) {
    let place = tempfile::tempdir().expect("a directory");
    let words = "--slo p99<250ms --rate 10/s --url http://localhost:8080/ -- /bin/true";
    let arguments = [&["plan"], more, &words.split(' ').collect::<Vec<_>>()].concat();
    let ended = loadline(place.path(), &arguments, b"");
    (
        ended.status.code(),
        text(&ended.stdout) + &text(&ended.stderr),
    )
}

#[test]
fn a_plan_is_of_the_command_that_is_named() {
    for (words, code, said) in [
        ("--cpu 1,2", 0, "`run`: 2 trials"),
        ("size --cpu 1,2", 0, "a search takes about"),
        ("run --cpu 1", 0, "`run`: 1 trial"),
        ("size --memory 64Mi", 2, "`size` takes neither"),
        ("size.toml", 2, "size.toml"),
    ] {
        let (ended, printed) = planned(&words.split(' ').collect::<Vec<_>>());
        assert!(
            ended == Some(code) && printed.contains(said),
            "{words}: {printed}"
        );
    }
    let cgroups = Path::new("/sys/fs/cgroup");
    let offered = std::fs::read_to_string(cgroups.join("cgroup.controllers")).unwrap_or_default();
    let can_limit = cgroups.join("cpu").exists() || offered.split_whitespace().any(|c| c == "cpu");
    let searched = planned(&["size"]).1;
    assert_eq!(searched.contains("searched too"), can_limit, "{searched}");
    let unlimited = planned(&["size", "--cpu", "none"]).1;
    assert!(!unlimited.contains("searched too"), "{unlimited}");
}

#[test]
fn limits_of_a_matrix_need_no_file_and_the_old_name_of_jvm_options_is_taken() {
    let plan = |more: &[&str]| planned(more).1;
    let both = plan(&["--memory", "512Mi,1Gi", "--repeats", "3"]);
    assert!(both.contains("6 trials"), "{both}");
    let one = plan(&["--memory", "512Mi", "--repeats", "2"]);
    assert!(one.contains("2 trials"), "{one}");
    let now = plan(&["--repeats", "2", "--jvm", "-Xmx64m"]);
    assert!(now.contains("-Xmx64m"), "{now}");
    assert_eq!(now, plan(&["--repeats", "2", "--options", "-Xmx64m"]));
}

#[test]
fn a_reference_that_leads_nowhere_is_told_before_anything_runs() {
    let place = tempfile::tempdir().expect("a directory");
    let of = |variable: &str| {
        let arguments = [
            "plan",
            "--slo",
            "p99<250ms",
            "--rate",
            "10/s",
            "--url",
            "http://localhost:8080/",
            "--env",
            variable,
            "--",
            "/bin/true",
        ];
        loadline(place.path(), &arguments, b"")
    };
    let set = of("LOADLINE_TEST_SECRET");
    assert_eq!(set.status.code(), Some(0), "{}", text(&set.stderr));
    let unset = of("LOADLINE_NO_SUCH");
    let said = text(&unset.stderr);
    assert!(
        said.contains("`LOADLINE_NO_SUCH`, which is not set"),
        "{said}"
    );
    let written = of("DB_PASSWORD=hunter22");
    let said = text(&written.stderr);
    assert_eq!(written.status.code(), Some(2));
    assert!(
        said.contains("--env-file") && !said.contains("hunter22"),
        "{said}"
    );
}

#[test]
fn lint_checks_on_paper_and_runs_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let pod = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: jdk, command: [java, -jar, a.jar]}]}\n";
    let linted = loadline(place.path(), &["lint", "-"], pod.as_bytes());
    let judged = loadline(place.path(), &["judge", "--manifest", "-"], pod.as_bytes());
    assert_eq!(linted.status.code(), Some(1), "{}", text(&linted.stderr));
    assert!(
        text(&linted.stdout).contains("no memory limit"),
        "{}",
        text(&linted.stdout)
    );
    assert_eq!(linted.stdout, judged.stdout);
    let above = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: jdk, command: [java, -jar, a.jar], resources: {requests: {cpu: 2}, limits: {cpu: 500m, memory: 512Mi}}}]}\n";
    let linted = loadline(place.path(), &["lint", "-"], above.as_bytes());
    let said = text(&linted.stdout);
    assert!(
        said.contains("the CPU request 2 is above the limit 500m")
            && said.contains("hint: lower the request to the limit"),
        "{said}"
    );
}

#[test]
fn heaps_of_a_build_are_added_up_against_its_memory() {
    let place = tempfile::tempdir().expect("a directory");
    let write =
        |name: &str, text: &str| fs::write(place.path().join(name), text).expect("writable");
    write("gradle.properties", "org.gradle.jvmargs=-Xmx1g\n");
    write("jvm.config", "-Xmx256m\n");
    write(
        "pom.xml",
        "<artifactId>maven-surefire-plugin</artifactId><argLine>-Xmx1g</argLine>",
    );
    let lint = |memory: &str, files: &[&str]| {
        let arguments = [&["lint", "--memory", memory], files].concat();
        let linted = loadline(place.path(), &arguments, b"");
        (linted.status.code(), text(&linted.stdout))
    };
    let (code, said) = lint("1Gi", &["pom.xml", "jvm.config"]);
    assert_eq!(code, Some(1), "{said}");
    insta::assert_snapshot!(said, @"
    Maven build: error: the heaps of its JVMs may take 1280Mi together, and there are 1Gi: Maven itself (.mvn/jvm.config) 256Mi, test JVM (argLine) 1Gi
      hint: give each less, or give the build more memory; `loadline size --job` measures what it needs
    ");
    let (code, said) = lint("1536Mi", &["gradle.properties"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("may take 1600Mi together, and there are 1536Mi"),
        "{said}"
    );
    assert_eq!(lint("2Gi", &["gradle.properties", "pom.xml"]).0, Some(0));
}

#[test]
fn what_ships_today_is_held_against_the_answer() {
    let place = tempfile::tempdir().expect("a directory");
    let said = "Today spring-web ships with 2 CPUs and 4Gi: this saves 1 CPU (50 %)";
    let shown = loadline(place.path(), &["show", "-", "--today", "2/4Gi"], &record());
    assert!(
        text(&shown.stdout).contains(said),
        "{}",
        text(&shown.stdout)
    );
    let pod = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: jdk, command: [java, -jar, a.jar], resources: {limits: {cpu: 2, memory: 4Gi}}}]}\n";
    fs::write(place.path().join("pod.yaml"), pod).expect("writable");
    let arguments = ["report", "-", "-o", "-", "--manifest", "pod.yaml"];
    let report = loadline(place.path(), &arguments, &record());
    assert!(
        text(&report.stdout).contains(said),
        "{}",
        text(&report.stderr)
    );
    let both = ["show", "-", "--today", "4Gi", "--manifest", "pod.yaml"];
    let refused = loadline(place.path(), &both, &record());
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn the_first_screen_has_at_most_30_lines_with_what_is_said_below_it() {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../records");
    let mut seen = 0;
    for entry in fs::read_dir(records).expect("records").flatten() {
        let Ok(file) = fs::File::open(entry.path().join("result.json.gz")) else {
            continue;
        };
        let read = std::io::read_to_string(flate2::read::GzDecoder::new(file));
        let view = loadline_report::read(&read.expect("text")).expect("a result");
        // Three lines of what to do next stand below it.
        for width in [80, 100, 200] {
            let screen = loadline_report::render_brief(&view, width);
            let lines = screen.lines().count();
            assert!(lines <= 27, "{}, {width}: {lines}", entry.path().display());
        }
        seen += 1;
    }
    assert!(seen >= 5, "{seen}");
}
