//! The history of results: what `list` shows of a store. No root, no trials.

use std::path::Path;
use std::process::{Command, Output};

use loadline_analysis::record::MachineDescription;
use loadline_runner::store::{NewResult, ResultKind, ResultStatus, Store};

fn loadline(place: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(arguments)
        .arg("--state")
        .arg(place.join("state"))
        .current_dir(place)
        .output()
        .expect("it starts")
}

/// A result with this title that ended so.
fn add(store: &Store, title: &str, status: ResultStatus, outcome: Option<&str>) -> String {
    let new = NewResult {
        kind: ResultKind::Size,
        title: title.to_owned(),
        experiment: String::new(),
        directory: "/srv".into(),
        command: Vec::new(),
        machine: MachineDescription::default(),
    };
    let id = store.create_result(&new).expect("a result");
    store.set_status(&id, status, outcome).expect("it ends");
    id
}

/// The answer of the recorded search, as the store keeps one, proven or with a start that failed.
fn answer(is_proven: bool) -> String {
    let record = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../records/2026-11-20-spring-web-size/result.json.gz");
    let file = std::fs::File::open(record).expect("the record");
    let read: serde_json::Value =
        serde_json::from_reader(flate2::read::GzDecoder::new(file)).expect("JSON");
    let mut answer = read["recommendation"].clone();
    if !is_proven {
        answer["proof"]["passes"] = 0.into();
    }
    answer.to_string()
}

fn out(output: &Output) -> (String, String) {
    assert!(output.status.success(), "{output:?}");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// The titles that `list --json` has with these flags.
fn titles(place: &Path, flags: &[&str]) -> Vec<String> {
    let (text, _) = out(&loadline(place, &[&["list", "--json"], flags].concat()));
    let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let rows = read["results"].as_array().expect("results");
    let title = |row: &serde_json::Value| row["title"].as_str().expect("a title").to_owned();
    rows.iter().map(title).collect()
}

#[test]
fn a_list_has_what_fits_all_flags() {
    let place = tempfile::tempdir().expect("a directory");
    let store = Store::open_or_create(&place.path().join("state")).expect("a store");
    add(&store, "shop.jar", ResultStatus::Done, Some(&answer(true)));
    add(&store, "cart.jar", ResultStatus::Done, Some(&answer(false)));
    add(
        &store,
        "shop:2",
        ResultStatus::Failed,
        Some(r#"{"undecided":null,"left_out":[]}"#),
    );
    add(&store, "till", ResultStatus::Interrupted, None);
    let of = |flags: &[&str]| titles(place.path(), flags);
    assert_eq!(of(&[]), ["till", "shop:2", "cart.jar", "shop.jar"]);
    assert_eq!(of(&["--service", "shop"]), ["shop:2", "shop.jar"]);
    assert_eq!(of(&["--verdict", "tested"]), ["shop.jar"]);
    assert_eq!(of(&["--verdict", "not-proven"]), ["cart.jar"]);
    assert_eq!(of(&["--verdict", "no-answer"]), ["shop:2"]);
    assert_eq!(of(&["--verdict", "interrupted"]), ["till"]);
    assert_eq!(
        of(&["--verdict", "done", "--service", "shop"]),
        ["shop.jar"]
    );
    assert_eq!(of(&["--since", "1h", "--service", "till"]), ["till"]);
    assert_eq!(of(&["--before", "30d"]), [""; 0]);
    assert_eq!(of(&["--before", "2020-01-01"]), [""; 0]);
    assert_eq!(of(&["--since", "2020-01-01"]).len(), 4);
    assert_eq!(of(&["--since", "9000-01-01"]), [""; 0]);
    assert_eq!(of(&["--before", "9000-01-01"]).len(), 4);

    let (text, _) = out(&loadline(place.path(), &["list", "--service", "cart"]));
    assert!(
        text.contains("cart.jar") && !text.contains("shop"),
        "{text}"
    );
}

/// An answer without a CPU limit is listed with its request.
#[test]
fn a_list_has_the_cpu_of_an_answer() {
    let place = tempfile::tempdir().expect("a directory");
    let store = Store::open_or_create(&place.path().join("state")).expect("a store");
    let mut own: serde_json::Value = serde_json::from_str(&answer(true)).expect("JSON");
    own["configuration"]["cpu_millicpus"] = serde_json::Value::Null;
    own["configuration"]["cpu_request_millicpus"] = 800.into();
    let own = own.to_string();
    add(&store, "shop.jar", ResultStatus::Done, Some(&own));
    let (text, _) = out(&loadline(place.path(), &["list", "--json"]));
    let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let listed = &read["results"][0]["answer"];
    assert_eq!(listed["cpu_request_millicpus"], 800, "{text}");
    assert!(listed["cpu_millicpus"].is_null(), "{text}");
}

#[test]
fn a_list_that_is_empty_says_how_many_there_are() {
    let place = tempfile::tempdir().expect("a directory");
    let store = Store::open_or_create(&place.path().join("state")).expect("a store");
    add(&store, "shop.jar", ResultStatus::Done, None);
    for flags in [
        &["list", "--service", "x"][..],
        &["list", "--json", "--service", "x"],
    ] {
        let (_, told) = out(&loadline(place.path(), flags));
        assert!(
            told.contains("matches these flags; without them there are 1"),
            "{told}"
        );
    }
}

#[test]
fn a_wrong_word_names_all() {
    let place = tempfile::tempdir().expect("a directory");
    let ended = loadline(place.path(), &["list", "--verdict", "good"]);
    assert_eq!(ended.status.code(), Some(2));
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    for word in [
        "tested",
        "not-tested",
        "no-answer",
        "running",
        "interrupted",
        "failed",
        "done",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
}

/// The ids that are left.
fn left(store: &Store) -> Vec<String> {
    let rows = store.all_results().expect("readable");
    rows.into_iter().map(|row| row.id).collect()
}

#[test]
fn old_results_are_listed_with_their_sizes_and_removed_when_that_is_said() {
    let place = tempfile::tempdir().expect("a directory");
    let store = Store::open_or_create(&place.path().join("state")).expect("a store");
    let small = add(&store, "cart.jar", ResultStatus::Done, None);
    let large = add(&store, "shop.jar", ResultStatus::Done, Some(&answer(true)));
    std::fs::create_dir_all(store.cache_directory(&large)).expect("a directory");
    std::fs::write(
        store.cache_directory(&large).join("app.jsa"),
        vec![0; 3 << 20],
    )
    .expect("writable");
    let orphan = store.trial_log_path("0199");
    std::fs::write(&orphan, "of nobody").expect("writable");
    let of = |flags: &[&str]| out(&loadline(place.path(), &[&["clean"], flags].concat())).0;

    let none = of(&["--older", "30d"]);
    assert!(none.contains("is older") && orphan.exists(), "{none}");
    // What a removal that was killed left goes with the next one, although no result does.
    let none = of(&["--older", "30d", "--yes"]);
    assert!(none.contains("is older") && !orphan.exists(), "{none}");
    std::fs::write(&orphan, "of nobody").expect("writable");
    let listed = of(&["--older", "9000-01-01"]);
    let (first, second) = (listed.find("shop.jar"), listed.find("cart.jar"));
    assert!(first.is_some() && first < second, "{listed}");
    assert!(
        listed.contains("3Mi  ") && listed.contains("--yes"),
        "{listed}"
    );
    assert_eq!(left(&store), [large.clone(), small.clone()]);

    let running = add(&store, "till", ResultStatus::Running, None);
    let ended = loadline(place.path(), &["clean", "--older", "9000-01-01", "--yes"]);
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(3), "{told}");
    assert!(
        told.contains("another loadline is working on") && told.contains(&running),
        "{told}"
    );
    assert_eq!(left(&store), [running]);
    assert!(!store.cache_directory(&large).exists() && !orphan.exists());
}

/// Read-only commands make no files: neither the state directory nor anything next to it.
#[test]
fn reading_commands_create_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let record = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../records/2026-11-20-spring-web-size/result.json.gz");
    let file = record.to_str().expect("text");
    let manifest = place.path().join("pod.yaml");
    std::fs::write(
        &manifest,
        "kind: Pod\nspec: {containers: [{name: a, image: x}]}\n",
    )
    .expect("writable");
    let load = "--slo p99<250ms --rate 100/s --url http://localhost:8080/";
    let rows = [
        "list",
        "list --json",
        "show",
        "show 0199",
        "explain",
        "export",
        "report -o -",
        "emit --to deploy",
        "compare last last",
        "soak",
        "resume",
        "clean",
        "clean --older 1d --yes",
        "lint pod.yaml",
        "judge --manifest pod.yaml",
        "doctor",
        "plan LOAD -- /bin/true",
        "show FILE",
        "show FILE --full",
        "explain FILE",
        "export FILE",
        "report FILE -o -",
        "compare FILE FILE",
        "judge --manifest pod.yaml --measured FILE",
    ];
    for row in rows {
        let row = row.replace("LOAD", load).replace("FILE", file);
        let words: Vec<&str> = row.split(' ').collect();
        let ended = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(&words)
            .env("LOADLINE_STATE", place.path().join("state"))
            .env("HOME", place.path())
            .env_remove("XDG_STATE_HOME")
            .current_dir(place.path())
            .output()
            .expect("it starts");
        let there = std::fs::read_dir(place.path()).expect("it is there");
        let there: Vec<_> = there.flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(there, ["pod.yaml"], "loadline {row}: {ended:?}");
    }
}

/// A podman that lists these containers as loadline's and notes what it is asked for.
fn podman_with(place: &Path, containers: &[String]) {
    let names = containers.join(" ");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >>'{}/asked'\ncase \"$*\" in *'ps --all'*) printf '%s\\n' {names};; *) ;; esac\n",
        place.display()
    );
    let program = place.join("podman");
    std::fs::write(&program, script).expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("a mode");
}

#[test]
fn clean_removes_containers_of_this_boot_of_this_machine_only() {
    let place = tempfile::tempdir().expect("a directory");
    Store::open_or_create(&place.path().join("state")).expect("a store");
    let own = loadline_cgroup::GroupName::new(Path::new("/proc"), "trial").expect("a name");
    let named = |boot: &str, pid: u32| {
        let name = loadline_cgroup::GroupName {
            boot: boot.to_owned(),
            pid,
            ..own.clone()
        };
        name.to_string()
    };
    let (no_process, alive) = (4_000_000_000, std::process::id());
    // Another machine's, a clone's, and this machine's from before a reboot: all look alike.
    let others = [named("deadbeef", 4242), named("deadbeef", alive)];
    let ours = [named(&own.boot, no_process), named(&own.boot, alive)];
    podman_with(place.path(), &[&others[..], &ours[..]].concat());
    for variable in [
        None,
        Some(("CONTAINER_HOST", "ssh://elsewhere/podman.sock")),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["clean", "--state"])
            .arg(place.path().join("state"))
            .env("PATH", format!("{}:/usr/bin:/bin", place.path().display()))
            .envs(variable)
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let asked = std::fs::read_to_string(place.path().join("asked")).expect("it was asked");
        for other in &others {
            let removed = asked
                .lines()
                .find(|l| l.contains("rm ") && l.contains(other));
            assert_eq!(removed, None, "{variable:?}: {asked}");
            assert!(!said.contains(other), "{variable:?}: {said}");
        }
        assert!(
            !asked.contains(&format!("rm --force --volumes {}", ours[1])),
            "{asked}"
        );
        assert!(
            said.contains(&ours[0]),
            "{variable:?}: {said}\n{asked}\n{output:?}"
        );
    }
}
