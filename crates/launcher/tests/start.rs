//! The user's view: modes, strictness, the JSON line, reports, presets, broken settings.

mod stage;

use std::process::{Command, Output};

use stage::Stage;

/// The words java was started with, after `java` itself.
fn started(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    let mut words: Vec<String> = text.split('\0').map(str::to_owned).collect();
    assert_eq!(
        words.pop().as_deref(),
        Some(""),
        "the probe ends each word with NUL"
    );
    words.remove(0);
    words
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// The launcher with `flags`, starting `java -jar app.jar` on the stage, with text log.
fn launcher(stage: &Stage, flags: &[&str]) -> Command {
    let mut command = stage.launcher("words");
    command.env_remove("LOADLINE_LOG").args(flags).arg("--");
    command
        .arg(stage.java())
        .args(["-Ddb.password=geheim", "-jar", "app.jar"]);
    command
}

fn run(command: &mut Command) -> Output {
    command.output().expect("the launcher starts")
}

const OWN: [&str; 3] = ["-Ddb.password=geheim", "-jar", "app.jar"];

#[test]
fn off_adds_nothing_and_report_only_says() {
    let stage = Stage::new();
    let off = run(&mut launcher(&stage, &["--mode=off", "--memory=200Mi"]));
    assert_eq!(started(&off), OWN);
    assert_eq!(errors(&off), "");
    let report = run(&mut launcher(&stage, &["--mode=report", "--memory=200Mi"]));
    assert_eq!(started(&report), OWN);
    assert!(
        errors(&report).contains("would add      -Xmx60m"),
        "{}",
        errors(&report)
    );
    let apply = run(&mut launcher(&stage, &["--memory=200Mi"]));
    assert!(started(&apply).contains(&"-Xmx60m".to_owned()));
    assert!(started(&apply).ends_with(&OWN.map(str::to_owned)));
}

#[test]
fn only_strict_refuses_and_the_minimum_is_stated() {
    let stage = Stage::new();
    let lax = run(&mut launcher(&stage, &["--memory=100Mi"]));
    assert!(lax.status.success());
    assert!(
        errors(&lax).contains("at least 126Mi is needed; started anyway"),
        "{}",
        errors(&lax)
    );
    let strict = run(&mut launcher(&stage, &["--memory=100Mi", "--strict"]));
    assert_eq!(strict.status.code(), Some(78));
    assert!(strict.stdout.is_empty(), "java was started");
    assert!(
        errors(&strict).contains("at least 126Mi is needed"),
        "{}",
        errors(&strict)
    );
    let enough = run(&mut launcher(&stage, &["--memory=126Mi", "--strict"]));
    assert!(enough.status.success(), "{}", errors(&enough));
}

#[test]
fn the_json_line_is_one_line_without_secrets() {
    let stage = Stage::new();
    let mut command = launcher(&stage, &["--memory=512Mi", "--cpus=1.5"]);
    let output = run(command.env("LOADLINE_LOG", "json"));
    let line = errors(&output);
    assert_eq!(line.matches('\n').count(), 1, "{line}");
    for part in [
        "{\"event\":\"loadline-launch\",\"schema\":1,\"jdk\":\"HotSpot 17.0.15\",",
        "\"memory_bytes\":{\"value\":536870912,\"from\":\"LOADLINE_MEMORY\"}",
        "\"cpu_millis\":{\"value\":1500,\"from\":\"LOADLINE_CPUS\"}",
        "{\"option\":\"-XX:+ExitOnOutOfMemoryError\",\"provenance\":\"default\",\"reason\":",
        "\"-Ddb.password=***\"",
    ] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert!(!line.contains("geheim"), "{line}");
    let explained = run(&mut launcher(&stage, &["--explain", "--memory=512Mi"]));
    assert!(
        !errors(&explained).contains("geheim"),
        "{}",
        errors(&explained)
    );
}

#[test]
fn a_profile_is_used_and_said() {
    let stage = Stage::new();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("loadline.profile");
    let profile = "compiler = c1\nclasses = 11000\nmetaspace = 60Mi\ncode_cache = 20Mi\nthreads = 30\n\
                   thread_stack = 100Ki\ndirect = 1Mi\njit = 20Mi\ncds = 12Mi\nfiles = 20Mi\nmalloc = 10Mi\n\
                   live_heap = 20Mi\n";
    std::fs::write(&file, profile).expect("a fresh file");
    let flag = format!("--profile={}", file.display());
    let output = run(&mut launcher(
        &stage,
        &["--explain", "--memory=256Mi", "--cpus=1", &flag],
    ));
    let text = errors(&output);
    assert!(
        text.contains(&format!("profile        {}", file.display())),
        "{text}"
    );
    assert!(
        text.contains("metaspace        60.0 MiB  from the profile (measured)"),
        "{text}"
    );
    assert!(text.contains("(measured: the profile's)"), "{text}");
    let words = started(&output);
    let heap = words.iter().find_map(|word| {
        word.strip_prefix("-Xmx")?
            .strip_suffix('m')?
            .parse::<u64>()
            .ok()
    });
    // 256 less 4 % and 146 MiB of regions: more than the rule's 30 %.
    assert_eq!(heap, Some(99), "{words:?}");
}

#[test]
fn what_is_broken_is_said_and_java_starts() {
    let stage = Stage::new();
    for (name, value, said) in [
        ("LOADLINE_MEMORY", "a lot", "LOADLINE_MEMORY"),
        ("LOADLINE_CPUS", "many", "LOADLINE_CPUS"),
        ("LOADLINE_MODE", "fast", "LOADLINE_MODE is `fast`"),
        ("LOADLINE_COMPAT", "jaz", "LOADLINE_COMPAT"),
        ("LOADLINE_PROFILE", "/no/such/file", "could not be read"),
        (
            "LOADLINE_GC_LOG",
            "/no/such/place/gc.log",
            "LOADLINE_GC_LOG",
        ),
        ("JAVA_OPTS", "-Dx=\"open", "JAVA_OPTS"),
    ] {
        let mut command = launcher(&stage, &[]);
        let output = run(command.env(name, value));
        assert!(output.status.success(), "{name}: {}", errors(&output));
        assert!(
            errors(&output).contains(said),
            "{name}: {}",
            errors(&output)
        );
        assert!(
            started(&output).ends_with(&OWN.map(str::to_owned)),
            "{name}"
        );
    }
}

#[test]
fn other_launchers_options_are_explained_as_theirs() {
    let stage = Stage::new();
    let flags = ["--explain", "--memory=1Gi", "--compat=paketo"];
    let mut command = launcher(&stage, &flags);
    let output = run(command.env("BPL_JVM_LOADED_CLASS_COUNT", "15823"));
    let text = errors(&output);
    assert!(
        text.contains("-Xmx433281K (calculated: as paketo computes it)"),
        "{text}"
    );
    assert!(!text.contains("-XX:+UseSerialGC ("), "{text}");
    assert!(started(&output).contains(&"-Xmx433281K".to_owned()));
}

/// The fields that matter of the `release` file of AdoptOpenJDK 11.0.10 with OpenJ9.
const OPENJ9: &str = "IMPLEMENTOR=\"AdoptOpenJDK\"\nJAVA_VERSION=\"11.0.10\"\n\
    SOURCE=\"OpenJDK:0a86953833 OpenJ9:345e1b09e OMR:741e94ea8\"\nSEMANTIC_VERSION=\"11.0.10+9\"\n\
    JVM_VARIANT=\"Openj9\"\nJVM_VERSION=\"openj9-0.24.0\"\nHEAP_SIZE=\"Standard\"\n";

#[test]
fn openj9_gets_its_own_options_and_its_cache() {
    let stage = Stage::new();
    let java = stage.java();
    let home = java.ancestors().nth(2).expect("bin/java has a home");
    std::fs::write(home.join("release"), OPENJ9).expect("the stage's own file");
    let flags = ["--memory=512Mi", "--cpus=1"];
    let mut command = launcher(&stage, &flags);
    let words = started(&run(command.current_dir(home)));
    let own = OWN.map(str::to_owned);
    let mut added = words[..words.len() - own.len()].to_vec();
    // Depends on the machine: OpenJ9's count is passed where it would be wrong.
    added.retain(|word| !word.starts_with("-XX:ActiveProcessorCount="));
    assert_eq!(added, ["-Xmx256m", "-Xtune:virtualized"]);
    std::fs::create_dir(home.join("scc")).expect("a fresh directory");
    let cache = home.join("scc/C290M11F1A64P_loadline_G41L00");
    let jar = home.join("app.jar").display().to_string();
    let with_cache = |bytes: &str| {
        std::fs::write(&cache, bytes).expect("the stage's own file");
        let mut command = stage.launcher("words");
        command
            .args(flags)
            .args(["--explain", "--"])
            .arg(&java)
            .args(["-jar", &jar]);
        run(&mut command)
    };
    let empty = with_cache("");
    assert!(errors(&empty).contains("is empty"), "{}", errors(&empty));
    let words = started(&empty);
    assert!(
        !words.iter().any(|w| w.starts_with("-Xshareclasses")),
        "{words:?}"
    );
    let words = started(&with_cache("classes"));
    let expected = format!(
        "-Xshareclasses:name=loadline,cacheDir={}/scc,readonly,nonfatal",
        home.display()
    );
    assert!(words.contains(&expected), "{words:?}");
}

/// The launcher under the name `java`, with the stage's java behind it.
fn as_java(stage: &Stage) -> Command {
    let directory = stage.java().with_file_name("link");
    std::fs::create_dir_all(&directory).expect("the stage's own directory");
    let link = directory.join("java");
    std::os::unix::fs::symlink(stage::LAUNCHER, &link).expect("a fresh link");
    let mut command = Command::new(link);
    command
        .env_clear()
        .env("PROBE", "words")
        .env("LOADLINE_JAVA", stage.java());
    command
}

#[test]
fn under_the_name_java_the_start_script_has_used_java_opts() {
    let stage = Stage::new();
    let debugger = "-agentlib:jdwp=transport=dt_socket,server=y,address=5005";
    // What `exec java $JAVA_OPTS -jar app.jar` becomes.
    let mut command = as_java(&stage);
    let command = command
        .env("JAVA_OPTS", debugger)
        .env("LOADLINE_DEBUG", "5006")
        .args([debugger, "-jar", "app.jar"]);
    let output = run(command);
    let words = started(&output);
    let agents = words.iter().filter(|word| word.starts_with("-agentlib"));
    assert_eq!(agents.count(), 1, "{words:?}");
    assert!(
        errors(&output).contains("LOADLINE_DEBUG"),
        "{}",
        errors(&output)
    );
    for mode in ["off", "report"] {
        let stage = Stage::new();
        let mut command = as_java(&stage);
        let command = command
            .env("JAVA_OPTS", debugger)
            .env("LOADLINE_MODE", mode);
        assert_eq!(
            started(&run(command.arg("-version"))),
            ["-version"],
            "{mode}"
        );
    }
}

#[test]
fn strict_refuses_on_what_decisions_depend_on_only() {
    let stage = Stage::new();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(at("app.jar"), "").expect("a fresh file");
    std::fs::write(at("app.jsa"), "no archive").expect("a fresh file");
    std::fs::write(at("loadline.profile"), "threads = 30\nfuture = 1\n").expect("a fresh file");
    let strict = |before: &[&str]| {
        let mut command = stage.launcher("words");
        command
            .env_remove("LOADLINE_LOG")
            .args(["--strict", "--memory=1Gi", "--"])
            .arg(stage.java())
            .args(before)
            .args(["-jar", &at("app.jar"), "@user"]);
        run(&mut command)
    };
    let healthy = strict(&[]);
    assert_eq!(healthy.status.code(), Some(0), "{}", errors(&healthy));
    for said in ["app.jsa is passed over", "future = 1"] {
        assert!(errors(&healthy).contains(said), "{}", errors(&healthy));
    }
    let doubtful = strict(&["@/no/such/file"]);
    assert_eq!(doubtful.status.code(), Some(78), "{}", errors(&doubtful));
    assert!(doubtful.stdout.is_empty(), "java was started");
}

#[test]
fn a_profile_lies_beside_an_application_without_a_jar_too() {
    let stage = Stage::new();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().display().to_string();
    let file = directory.path().join("loadline.profile");
    std::fs::write(&file, "threads = 30\n").expect("a fresh file");
    let mut command = stage.launcher("words");
    command
        .env_remove("LOADLINE_LOG")
        .args(["--explain", "--memory=1Gi", "--"])
        .arg(stage.java())
        .args([
            "-cp",
            &home,
            "org.springframework.boot.loader.launch.JarLauncher",
        ]);
    let text = errors(&run(&mut command));
    assert!(
        text.contains(&format!("profile        {}", file.display())),
        "{text}"
    );
}

#[test]
fn fabric8s_heap_is_explained_as_it_is_passed() {
    let stage = Stage::new();
    let flags = ["--explain", "--memory=1Gi", "--cpus=1", "--compat=fabric8"];
    let mut command = launcher(&stage, &flags);
    let output = run(command.env("JAVA_MAX_MEM_RATIO", "50"));
    assert!(started(&output).contains(&"-Xmx512m".to_owned()));
    let text = errors(&output);
    let heap = text
        .lines()
        .find(|line| line.contains("region         heap "));
    assert!(
        heap.is_some_and(|line| line.ends_with(" 512.0 MiB")),
        "{text}"
    );
    let mut command = launcher(&stage, &flags[1..]);
    command
        .env("JAVA_MAX_MEM_RATIO", "50")
        .env("LOADLINE_LOG", "json");
    let text = errors(&run(&mut command));
    assert!(text.contains("\"heap_bytes\":536870912,"), "{text}");
}

#[test]
fn quiet_is_quiet_about_other_programs_too() {
    let stage = Stage::new();
    for (log, is_said) in [("text", true), ("quiet", false), ("json", false)] {
        let mut command = stage.launcher("words");
        let output = run(command.env("LOADLINE_LOG", log).arg("true"));
        assert!(output.status.success());
        assert_eq!(errors(&output).contains("is not java"), is_said, "{log}");
    }
}

#[test]
fn an_open_quote_does_not_show_what_it_quotes() {
    let stage = Stage::new();
    let mut command = launcher(&stage, &[]);
    let output = run(command.env("JAVA_OPTS", "-Ddb.password=\"ge heim"));
    let text = errors(&output);
    assert!(
        text.contains("JAVA_OPTS: a quote \" is never closed"),
        "{text}"
    );
    assert!(!text.contains("ge heim"), "{text}");
    // Quotes around several options make one of them, which warnings and reasons quote.
    let mut command = launcher(&stage, &["--explain"]);
    let output = run(command.env("JAVA_TOOL_OPTIONS", "\"-Xmx1g -Ddb.password=geheim\""));
    let text = errors(&output);
    assert!(text.contains("refuses to start: -Xmx1g"), "{text}");
    assert!(!text.contains("geheim"), "{text}");
}
