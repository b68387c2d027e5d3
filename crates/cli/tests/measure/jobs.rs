//! Runs: success criteria, distinguishing failures, and that no run changes the user's files or
//! leaves a process.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::lab::{Lab, recommended};
use crate::process::{Call, Ended};
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 8] = [
    (
        "gradle_may_write_its_own_directory",
        gradle_may_write_its_own_directory,
    ),
    (
        "a_job_s_manifest_becomes_a_run",
        a_job_s_manifest_becomes_a_run,
    ),
    (
        "a_run_is_restored_before_and_changes_nothing",
        a_run_is_restored_before_and_changes_nothing,
    ),
    ("failed_runs_are_told_apart", failed_runs_are_told_apart),
    (
        "a_run_that_does_not_end_is_ended_at_its_bound",
        a_run_that_does_not_end_is_ended_at_its_bound,
    ),
    (
        "what_a_run_leaves_running_is_gone",
        what_a_run_leaves_running_is_gone,
    ),
    (
        "a_batch_is_sized_with_its_heap",
        a_batch_is_sized_with_its_heap,
    ),
    (
        "a_build_is_sized_with_the_heap_of_its_launcher",
        a_build_is_sized_with_the_heap_of_its_launcher,
    ),
];

/// A directory of the lab that the application's user may enter.
fn project(lab: &Lab) -> PathBuf {
    let project = lab.path().join("project");
    fs::create_dir_all(project.join("target")).expect("directories");
    fs::write(project.join("target/old.txt"), "old").expect("a file");
    for path in [lab.path(), &project] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("the lab is its own");
    }
    project
}

fn job(lab: &Lab, subcommand: &str, slo: &str) -> Call {
    let call = lab.call(subcommand).in_directory(&project(lab));
    call.args(&["--wait", "--job", "--slo", slo])
}

fn shell(call: Call, script: &str) -> Ended {
    call.args(&["--", "/bin/sh", "-c", script]).into_end()
}

fn a_run_is_restored_before_and_changes_nothing() -> Outcome {
    let lab = Lab::new();
    let call = job(&lab, "run", "exit=3,cpu<30s")
        .args(&["--reset", "rm -r target", "--repeats", "2"])
        .args(&[
            "--expect-file",
            "made.txt",
            "--expect-output",
            "all is made",
        ]);
    let script = "test ! -e target && echo x > made.txt && echo 'now all is made.'; exit 3";
    shell(call, script)
        .expect_code(0)
        .prints(&["2 of 2", "CPU time"]);
    let result = lab.result("last");
    for trial in result["trials"].as_array().expect("two runs") {
        assert_eq!(trial["verdict"]["class"], "pass", "{trial}");
        assert_eq!(trial["evidence"]["run"]["expected_exit"], 3, "{trial}");
    }
    let project = lab.path().join("project");
    assert!(
        project.join("target/old.txt").is_file(),
        "the checkout was changed"
    );
    assert!(
        !project.join("made.txt").exists(),
        "the checkout was changed"
    );
    None
}

/// Gradle takes locks in its directory below the home directory, in every run.
fn gradle_may_write_its_own_directory() -> Outcome {
    let lab = Lab::new();
    let project = project(&lab);
    let home = lab.path().join("home");
    fs::create_dir_all(home.join(".gradle/caches")).expect("directories");
    fs::set_permissions(&home, Permissions::from_mode(0o755)).expect("the lab is its own");
    let gradle = project.join("gradlew");
    let script = format!(
        "#!/bin/sh\nset -e\necho x > {0}/.gradle/caches/modules.lock\ntest $HOME = {0}",
        home.display()
    );
    fs::write(&gradle, script).expect("a script");
    fs::set_permissions(&gradle, Permissions::from_mode(0o755)).expect("it is its own");
    job(&lab, "run", "exit=0")
        .env("HOME", &home)
        .args(&["--env", &format!("HOME={}", home.display())])
        .args(&["--", "./gradlew", "build"])
        .into_end()
        .expect_code(0)
        .prints(&["1 of 1"]);
    assert!(!home.join(".gradle/caches/modules.lock").exists());
    None
}

fn a_job_s_manifest_becomes_a_run() -> Outcome {
    let lab = Lab::new();
    let project = project(&lab);
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: nightly}\nspec: {template: {spec: {containers: [\
        {name: app, image: 'r/nightly:1', env: [{name: JAVA_TOOL_OPTIONS, value: -Xmx64m}, {name: DAY, value: today}], \
        resources: {limits: {cpu: 1, memory: 96Mi}}}]}}}";
    fs::write(project.join("job.yaml"), job).expect("a manifest");
    let script = "test $DAY = today";
    let init = lab.bare(&["init"]).in_directory(&project);
    init.args(&["--", "/bin/sh", "-c", script])
        .into_end()
        .expect_code(0)
        .says(&["Job/nightly"]);
    let run = lab.call("run").in_directory(&project);
    run.args(&["--wait"]).into_end().expect_code(0);
    let result = lab.result("last");
    let trial = &result["trials"][0];
    assert_eq!(trial["verdict"]["class"], "pass", "{trial}");
    let limit = trial["configuration"]["memory_bytes"].as_u64();
    assert_eq!(limit, Some(96 << 20), "{trial}");
    None
}

fn failed_runs_are_told_apart() -> Outcome {
    // (script, flags, verdict, what the reason says)
    let cases: [(&str, &[&str], &str, &str); 5] = [
        (
            "echo 'java.lang.OutOfMemoryError: Java heap space'; seq 1 20000; echo BUILD FAILED; exit 1",
            &[],
            "java_oom",
            "a JVM of the run ran out of heap, and the run ended with exit code 1",
        ),
        (
            "echo '[ERROR] [Help 1] http://cwiki.apache.org/confluence/display/MAVEN/OutOfMemoryError'; exit 1",
            &[],
            "java_oom",
            "a JVM of the run ran out of memory",
        ),
        (
            "echo 'Error: no such goal'; exit 2",
            &[],
            "crash",
            "it ended with exit code 2",
        ),
        (
            "exit 0",
            &["--expect-file", "app.jar"],
            "crash",
            "app.jar is not there, or empty",
        ),
        (
            "head -c 100000000 /dev/zero | tail -n 1 > /dev/null; exit 0",
            &["--memory", "24Mi"],
            "cgroup_oom",
            "the kernel killed",
        ),
    ];
    for (script, flags, cause, said) in cases {
        let lab = Lab::new();
        let call = job(&lab, "run", "exit=0").arg("--accept-noise").args(flags);
        shell(call, script).expect_code(1);
        let trial = lab.trial();
        assert_eq!(trial["verdict"]["cause"], cause, "{script}: {trial}");
        let reason = trial["reason"].to_string();
        assert!(reason.contains(said), "{script}: {reason}");
    }
    None
}

fn a_run_that_does_not_end_is_ended_at_its_bound() -> Outcome {
    let lab = Lab::new();
    let call = job(&lab, "run", "time<1s").arg("--accept-noise");
    shell(call, "sleep 600").expect_code(1);
    let trial = lab.trial();
    assert_eq!(trial["verdict"]["class"], "slo_miss", "{trial}");
    let reason = trial["reason"].to_string();
    assert!(reason.contains("it had not ended after 1"), "{reason}");
    None
}

fn what_a_run_leaves_running_is_gone() -> Outcome {
    let lab = Lab::new();
    // A daemon in a separate session, as Gradle starts them.
    let mark = format!("86{}", std::process::id());
    let script = format!("setsid sleep {mark} > /dev/null 2>&1 & sleep 0.2; exit 0");
    shell(job(&lab, "run", "exit=0"), &script).expect_code(0);
    let trial = lab.trial();
    assert_eq!(trial["verdict"]["class"], "pass", "{trial}");
    assert_eq!(
        trial["evidence"]["exit"]["leftover_processes"], 1,
        "{trial}"
    );
    let listed = Command::new("ps")
        .args(["-eo", "args"])
        .output()
        .expect("ps runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let left = listed
        .lines()
        .find(|line| line.starts_with("sleep ") && line.contains(&mark));
    assert_eq!(left, None, "the daemon lives on");
    None
}

/// Keeps 30 MB in use, makes garbage for a second or two, and ends.
const BATCH: &str = "
import java.util.*;
public class Batch {
    public static void main(String[] arguments) throws Exception {
        List<byte[]> live = new ArrayList<>();
        for (int i = 0; i < 300; i++) live.add(new byte[100_000]);
        long sum = 0;
        long end = System.nanoTime() + 1_500_000_000L;
        for (int i = 0; System.nanoTime() < end || i < 20_000; i++) {
            byte[] more = new byte[50_000];
            live.set(i % 300, Arrays.copyOf(live.get((i + 7) % 300), 100_000));
            sum += more.length;
        }
        System.out.println(\"done \" + sum);
    }
}
";

/// A search of the batch in the lab's project, without its command; `None` without a compiler.
fn batch_search(lab: &Lab) -> Option<Call> {
    let project = project(lab);
    fs::write(project.join("Batch.java"), BATCH).expect("a file");
    let compiled = Command::new("javac")
        .arg("Batch.java")
        .current_dir(&project)
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        return None;
    }
    let call = job(lab, "size", "exit=0").args(&["--accept-noise", "--cpu", "1"]);
    let call = call.args(&["--max-memory", "256Mi", "--step", "16Mi"]);
    let call = call.args(&["--confirm", "1", "--prove", "2", "--margin", "10%"]);
    Some(call.args(&["--expect-output", "done"]))
}

fn a_batch_is_sized_with_its_heap() -> Outcome {
    let lab = Lab::new();
    let Some(call) = batch_search(&lab) else {
        return Some("no javac".into());
    };
    let call = call.args(&["--fresh", "."]).args(&[
        "--",
        "java",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        ".",
        "Batch",
    ]);
    call.into_end().expect_code(0).prints(&[
        "CPU and",
        "with -Xm",
        "2 of 2 runs",
        "How long does a run take?",
    ]);
    let result = lab.result("last");
    let size = recommended(&result).expect("an answer");
    assert!((64 << 20..=256 << 20).contains(&size), "{size}");
    let shipped = result["recommendation"]["configuration"]["jvm_options"].to_string();
    assert!(shipped.contains("-Xmx"), "{shipped}");
    let out = lab.path().join("deploy");
    lab.call("emit")
        .args(&["last", "--to"])
        .arg(&out)
        .into_end()
        .expect_code(0);
    let job = fs::read_to_string(out.join("job.yaml")).expect("a file");
    for part in [
        "kind: Job\n",
        "restartPolicy: Never\n",
        "-Xmx",
        "137",
        "memory: ",
    ] {
        assert!(job.contains(part), "{part}: {job}");
    }
    None
}

/// Maven's start script reads MAVEN_OPTS as this one does.
fn a_build_is_sized_with_the_heap_of_its_launcher() -> Outcome {
    let lab = Lab::new();
    let Some(call) = batch_search(&lab) else {
        return Some("no javac".into());
    };
    let launcher = lab.path().join("project/mvn");
    let script =
        "#!/bin/sh\nexec java $MAVEN_OPTS -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp . Batch\n";
    fs::write(&launcher, script).expect("a file");
    fs::set_permissions(&launcher, Permissions::from_mode(0o755)).expect("the lab is its own");
    let call = call.args(&["--options-to", "launcher", "--", "./mvn"]);
    // It chose a heap, so the JVM's log arrived, and that was asked for in the same variable.
    call.into_end()
        .expect_code(0)
        .prints(&["in MAVEN_OPTS", "2 of 2 runs", "A run costs $"]);
    let result = lab.result("last");
    let recommendation = &result["recommendation"];
    assert_eq!(
        recommendation["configuration"]["options_variable"],
        "MAVEN_OPTS"
    );
    assert_eq!(recommendation["run_prices"][0]["offer"], "fargate");
    // A smaller size, tried last, may end before its JVM is looked at.
    let trials = result["trials"].as_array().expect("trials");
    let last = trials.iter().rfind(|trial| trial["purpose"] == "prove");
    let jvm = &last.expect("a run")["evidence"]["run"]["jvms"][0];
    let option = jvm["heap_option"].as_str().unwrap_or_default();
    assert!(option.starts_with("-Xmx"), "{jvm:#}");
    let out = lab.path().join("deploy");
    let emit = lab.call("emit").args(&["last", "--to"]).arg(&out);
    emit.args(&["--schedule", "0 3 * * *"])
        .into_end()
        .expect_code(0);
    let emit = lab.call("emit").args(&["last", "--to", "x"]);
    emit.args(&["--replicas", "3"])
        .into_end()
        .expect_code(2)
        .says(&["--replicas: a job is shipped as a separate Kubernetes Job"]);
    let read = |name: &str| fs::read_to_string(out.join(name)).expect("a file");
    assert!(
        read("jvm.config").contains("-Xmx"),
        "{}",
        read("jvm.config")
    );
    let job = read("job.yaml");
    for part in ["kind: CronJob\n", "name: MAVEN_OPTS\n", "-Xmx"] {
        assert!(job.contains(part), "{part}: {job}");
    }
    let lint = lab.call("lint").arg(out.join("job.yaml"));
    lint.into_end().expect_code(0);
    None
}
