//! `emit`, on the recorded run of the checkout: its files, and a manifest that it patches.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{add_to_app, changed, changed_copy, emit, files, loadline, said};

#[test]
fn emit_writes_its_files_and_overwrites_none() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let first = emit(place.path(), &[]);
    assert!(first.status.success(), "{}", said(&first));
    let deploy = place.path().join("deploy");
    let all = files(&deploy);
    assert_eq!(
        all,
        [
            "Dockerfile",
            "compose.yaml",
            "evidence.md",
            "java-tool-options.env",
            "jvm.options",
            "kubernetes.yaml",
            "loadline.profile"
        ]
    );
    fs::write(deploy.join("Dockerfile"), "mine").expect("writable");
    fs::remove_file(deploy.join("jvm.options")).expect("it is there");

    let again = emit(place.path(), &["--for", "docker,options"]);
    assert_eq!(again.status.code(), Some(2), "{}", said(&again));
    assert!(
        said(&again).contains("files already exist: deploy/"),
        "{}",
        said(&again)
    );
    assert!(said(&again).contains("hint: "));
    assert_eq!(
        fs::read_to_string(deploy.join("Dockerfile")).expect("a file"),
        "mine"
    );
    assert!(
        !deploy.join("jvm.options").exists(),
        "nothing is written when something is in the way"
    );

    let forced = emit(place.path(), &["--force"]);
    assert!(forced.status.success(), "{}", said(&forced));
    assert!(
        fs::read_to_string(deploy.join("Dockerfile"))
            .expect("a file")
            .contains("ENTRYPOINT")
    );
    assert_eq!(files(&deploy), all);
}

#[test]
fn emit_that_cannot_place_a_file_leaves_no_half_written_ones() {
    let place = tempfile::tempdir().expect("a temporary directory");
    // A directory where a file has to go: nothing can be placed there, not even by root.
    fs::create_dir_all(place.path().join("deploy/kubernetes.yaml")).expect("writable");
    let refused = emit(place.path(), &["--force"]);
    assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
    assert!(said(&refused).contains("deploy/kubernetes.yaml is a directory"));
    assert_eq!(files(&place.path().join("deploy")), ["kubernetes.yaml"]);
}

#[test]
fn emit_says_that_a_proof_failed() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let proven = emit(place.path(), &[]);
    assert!(!said(&proven).contains("not shown"), "{}", said(&proven));
    let file = changed(place.path(), |json| {
        json["recommendation"]["proof"]["passes"] = 12.into();
    });
    let output = loadline(place.path(), &["emit", &file, "--to", "failed"]);
    assert!(output.status.success(), "{}", said(&output));
    let warning = "warning: the size is not shown to keep the SLO: 8 of 20 fresh starts failed";
    assert!(said(&output).contains(warning), "{}", said(&output));
    for name in files(&place.path().join("failed")) {
        let path = place.path().join("failed").join(&name);
        let text = fs::read_to_string(path).expect("a file");
        assert!(text.contains("Test failed under GET "), "{name}: {text}");
    }
}

#[test]
fn a_command_without_a_jar_is_refused_with_what_to_do() {
    let place = tempfile::tempdir().expect("a temporary directory");
    for command in [
        r#"["java", "-cp", "lib/*", "com.example.Main"]"#,
        r#"["java", "@app.options", "-jar", "app.jar"]"#,
        r#"["./run.sh"]"#,
    ] {
        let file = changed(place.path(), |json| {
            let experiment = json["experiment"].as_str().expect("a text");
            let (before, rest) = experiment.split_once("command = [").expect("a command");
            let (_, after) = rest.split_once(']').expect("its end");
            json["experiment"] = format!("{before}command = {command}{after}").into();
        });
        let output = loadline(place.path(), &["emit", &file, "--to", "deploy"]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(
            said(&output).contains("cannot tell the jar of the command")
                && said(&output).contains("hint: "),
            "{}",
            said(&output)
        );
        assert!(!place.path().join("deploy").exists());
    }
}

/// A jar with `lib/a.jar` in its manifest, as in Quarkus and the extracted Spring Boot.
#[test]
fn what_the_manifest_of_the_jar_names_comes_along() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let jar = include_bytes!("../../../jvm/tests/data/cache/class-path.jar");
    fs::create_dir_all(place.path().join("app/lib")).expect("writable");
    fs::write(place.path().join("app/run.jar"), jar).expect("writable");
    fs::write(place.path().join("app/lib/spring-boot-3.5.16.jar"), "x").expect("writable");
    let file = changed(place.path(), |json| {
        let experiment = json["experiment"].as_str().expect("a text");
        json["experiment"] = experiment
            .replace("build/workloads/spring-web.jar", "app/run.jar")
            .into();
    });
    let output = loadline(place.path(), &["emit", &file, "--to", "deploy"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("next: cp -r app/run.jar app/lib "),
        "{}",
        said(&output)
    );
    let warnings: Vec<String> = said(&output)
        .lines()
        .filter(|line| line.starts_with("warning: ") && !line.contains(":latest"))
        .map(str::to_owned)
        .collect();
    // Debian's JDK has no image: that alone is warned of, not a jar that was read.
    assert!(
        matches!(&warnings[..], [one] if one.contains("not on the measured JDK")),
        "{warnings:?}"
    );
    let dockerfile = fs::read_to_string(place.path().join("deploy/Dockerfile")).expect("a file");
    assert!(
        dockerfile.contains("COPY [\"lib\", \"/app/lib\"]\n"),
        "{dockerfile}"
    );
}

/// A zip file with one entry, stored.
fn zip(name: &str, text: &str) -> Vec<u8> {
    let short = |n: usize| (n as u16).to_le_bytes();
    let long = |n: usize| (n as u32).to_le_bytes();
    let mut local = b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    let mut entry = b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    for header in [&mut local, &mut entry] {
        header.extend([long(text.len()), long(text.len())].concat());
        header.extend([short(name.len()), short(0)].concat());
    }
    local.extend([name.as_bytes(), text.as_bytes()].concat());
    entry.extend([0; 14]);
    entry.extend(name.as_bytes());
    let mut end = b"PK\x05\x06\0\0\0\0\x01\0\x01\0".to_vec();
    end.extend([long(entry.len()), long(local.len())].concat());
    end.extend(short(0));
    [local, entry, end].concat()
}

/// The recorded run, with a jar of this manifest in `my app/run.jar`.
fn with_jar(place: &Path, manifest: &str) -> String {
    fs::create_dir_all(place.join("my app")).expect("writable");
    let jar = zip("META-INF/MANIFEST.MF", manifest);
    fs::write(place.join("my app/run.jar"), jar).expect("writable");
    changed(place, |json| {
        let experiment = json["experiment"].as_str().expect("a text");
        json["experiment"] = experiment
            .replace("build/workloads/spring-web.jar", "my app/run.jar")
            .into();
    })
}

#[test]
fn quarkus_brings_its_directories() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let manifest = "Manifest-Version: 1.0\r\nMain-Class: io.quarkus.bootstrap.runner.QuarkusEntryPoint\r\nClass-Path: lib/boot/a.jar\r\n";
    let file = with_jar(place.path(), manifest);
    for folder in ["lib/boot", "app", "quarkus"] {
        fs::create_dir_all(place.path().join("my app").join(folder)).expect("writable");
    }
    fs::write(place.path().join("my app/lib/boot/a.jar"), zip("a", "a")).expect("writable");
    let output = loadline(place.path(), &["emit", &file, "--to", "de ploy"]);
    assert!(output.status.success(), "{}", said(&output));
    let copy = "next: cp -r 'my app/run.jar' 'my app/lib' 'my app/app' 'my app/quarkus' ";
    assert!(said(&output).contains(copy), "{}", said(&output));
    assert!(said(&output).contains(" 'de ploy'\n"), "{}", said(&output));
    let dockerfile = fs::read_to_string(place.path().join("de ploy/Dockerfile")).expect("a file");
    for name in ["lib", "app", "quarkus"] {
        let line = format!("COPY [\"{name}\", \"/app/{name}\"]\n");
        assert!(dockerfile.contains(&line), "{dockerfile}");
    }
}

#[test]
fn a_library_with_the_name_of_an_emitted_file_is_refused() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let manifest = "Manifest-Version: 1.0\r\nClass-Path: jvm.options\r\n";
    let file = with_jar(place.path(), manifest);
    fs::write(place.path().join("my app/jvm.options"), zip("a", "a")).expect("writable");
    let output = loadline(place.path(), &["emit", &file, "--to", "deploy"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("needs jvm.options, but loadline writes"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_jar_that_cannot_be_read_is_said() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let output = emit(place.path(), &[]);
    let warning = "warning: build/workloads/spring-web.jar cannot be read here";
    assert!(said(&output).contains(warning), "{}", said(&output));
    let manifests = emit(place.path(), &["--for", "kubernetes", "--force"]);
    let unread = |line: &str| line.starts_with("warning: ") && !line.contains(":latest");
    assert!(
        !said(&manifests).lines().any(unread),
        "{}",
        said(&manifests)
    );
}

#[test]
fn a_secret_that_must_be_made_is_a_next_step() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let file = changed(place.path(), |json| {
        add_to_app(json, "env = { DB_PASSWORD = \"hunter2\" }");
    });
    let output = loadline(place.path(), &["emit", &file, "--to", "deploy"]);
    let step = "next: kubectl create secret generic spring-web-secrets --from-env-file=FILE   # its lines: DB_PASSWORD=...\n";
    assert!(said(&output).contains(step), "{}", said(&output));
}

#[test]
fn the_cache_that_was_measured_is_built_in_the_image() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let file = changed(place.path(), |json| {
        json["recommendation"]["configuration"]["cache"] =
            serde_json::json!({"kind": "appcds", "requests": 500});
    });
    let output = loadline(place.path(), &["emit", &file, "--to", "deploy"]);
    assert!(output.status.success(), "{}", said(&output));
    let dockerfile = fs::read_to_string(place.path().join("deploy/Dockerfile")).expect("a file");
    assert!(
        dockerfile.contains("ready, 500 requests, SIGTERM"),
        "{dockerfile}"
    );
    assert!(
        dockerfile.contains("-XX:SharedArchiveFile=/app/app.jsa"),
        "{dockerfile}"
    );
}

#[test]
fn an_autoscaler_needs_a_rate_and_takes_the_measured_one() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let words = ["--for", "kubernetes", "--max-replicas", "8"];
    let refused = emit(place.path(), &words);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("does not say how much one pod can carry"));

    let size = serde_json::json!({"cpu_millicpus": 1000, "memory_bytes": 243_269_632});
    let priced = serde_json::json!({
        "variant": "", "limits": size, "billed": size, "replicas": 3,
        "cost": {"per_hour": 0.1, "per_month": 73.0, "per_million_requests": null}
    });
    let file = changed(place.path(), |json| {
        json["recommendation"]["deployment"] = serde_json::json!({
            "offer": {"name": "x", "region": "x", "arch": "x", "source": "x", "licence": "x",
                "date": "2026-11-01", "warning": null},
            "rate": 280.0, "headroom": 0.0, "spare": 0, "chosen": priced, "each": 93.4,
            "is_proven": true, "why_not": [], "front": [], "left_out": [],
            "cells": [{"variant": "", "limits": size, "carried": 100.0, "too_high": 150.0,
                "priced": priced, "could_not_measure": false}]
        });
    });
    let words = [&["emit", &file, "--to", "deploy"], &words[..]].concat();
    let output = loadline(place.path(), &words);
    assert!(output.status.success(), "{}", said(&output));
    let manifests = fs::read_to_string(place.path().join("deploy/kubernetes.yaml"));
    let manifests = manifests.expect("a file");
    for wanted in [
        "minReplicas: 3",
        "maxReplicas: 8",
        "averageValue: \"93334m\"",
        "# 280/s over 3 pods",
    ] {
        assert!(manifests.contains(wanted), "{wanted}: {manifests}");
    }
}

const ORDERS: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: orders}\nspec:\n  template:\n    spec:\n      containers:\n        - {name: app, image: \"orders:1\", env: [{name: JAVA_TOOL_OPTIONS, value: -Xmx1g}]}\n";

#[test]
fn emit_patches_a_manifest_that_is_there() {
    let place = tempfile::tempdir().expect("a temporary directory");
    fs::write(place.path().join("orders.yaml"), ORDERS).expect("writable");
    let output = emit(place.path(), &["--manifest", "orders.yaml"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(
        files(&place.path().join("deploy")),
        ["evidence.md", "kustomization.yaml", "patch.yaml"]
    );
    assert!(
        said(&output).contains("next: in the kustomization.yaml"),
        "{}",
        said(&output)
    );
    let patch = fs::read_to_string(place.path().join("deploy/patch.yaml")).expect("a patch");
    for wanted in ["name: app\n", "memory: ", "loadline/result: \""] {
        assert!(patch.contains(wanted), "{wanted}\n{patch}");
    }
    let values = place.path().join("values.yaml");
    fs::write(&values, "app: {javaOpts: -Xmx1g, resources: {}}\n").expect("writable");
    let words = [
        "--values",
        "values.yaml",
        "--values-path",
        "resources=app.resources",
        "--values-path",
        "java-options=app.javaOpts",
        "--force",
    ];
    let output = emit(place.path(), &words);
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("next: helm upgrade"),
        "{}",
        said(&output)
    );
}

/// The pod as the patch leaves it: what breaks the patched container is refused, and what is wrong with
/// another one is said.
#[test]
fn a_patched_pod_is_checked_as_lint_does() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let sidecar = "        - {name: agent, image: \"agent:1\", env: [{name: JAVA_TOOL_OPTIONS, value: -Xmx600m}], resources: {limits: {memory: 128Mi}}}\n";
    let manifest = ORDERS.to_owned() + sidecar;
    fs::write(place.path().join("orders.yaml"), &manifest).expect("writable");
    let words = ["--manifest", "orders.yaml", "--container", "app"];
    let output = emit(place.path(), &words);
    assert!(output.status.success(), "{}", said(&output));
    let warned = "warning: container agent: over-committed: the heap may take 600Mi";
    assert!(said(&output).contains(warned), "{}", said(&output));

    let small = "    spec:\n      resources: {limits: {memory: 64Mi}}\n";
    let manifest = ORDERS.replace("    spec:\n", small);
    fs::write(place.path().join("orders.yaml"), &manifest).expect("writable");
    let output = emit(place.path(), &[&words[..], &["--force"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let refused = "is above the limit of the pod 64Mi: the API server refuses the pod";
    assert!(said(&output).contains(refused), "{}", said(&output));
    assert!(said(&output).contains("hint: "), "{}", said(&output));
}

#[test]
fn wrong_manifests_are_refused_with_what_to_do() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let two = ORDERS.to_owned() + "---\n" + &ORDERS.replace("orders", "bills");
    for (name, manifest, more, why) in [
        ("no.yaml", "a: [", &[][..], "cannot read no.yaml"),
        ("empty.yaml", "", &[], "no document in it has a kind"),
        ("service.yaml", "kind: Service\n", &[], "it has Service"),
        ("job.yaml", "kind: CronJob\n", &[], "it has a CronJob"),
        (
            "chart.yaml",
            "a: {{ .Values.a }}\n",
            &[],
            "a template of a Helm chart",
        ),
        (
            "two.yaml",
            &two,
            &[],
            "Deployment/orders container app, Deployment/bills container app",
        ),
        (
            "one.yaml",
            ORDERS,
            &["--container", "web"],
            "is --container web; there are: Deployment/orders",
        ),
    ] {
        fs::write(place.path().join(name), manifest).expect("writable");
        let output = emit(place.path(), &[&["--manifest", name], more].concat());
        assert_eq!(output.status.code(), Some(2), "{name}: {}", said(&output));
        assert!(said(&output).contains(why), "{name}: {}", said(&output));
        assert!(
            said(&output).contains("hint: "),
            "{name}: {}",
            said(&output)
        );
        assert!(!place.path().join("deploy").exists(), "{name}");
    }
    let large = fs::File::create(place.path().join("large.yaml")).expect("writable");
    large.set_len(100 << 20).expect("room for a hole");
    let output = emit(place.path(), &["--manifest", "large.yaml"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("larger than 64 MiB"),
        "{}",
        said(&output)
    );
}

/// The files in `records/.../deploy` are an example for readers, and the whole output of `emit` for a
/// real run. `LOADLINE_UPDATE=1` writes them.
#[test]
fn the_files_beside_the_record_are_what_emit_writes() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let record = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../records/2026-11-30-spring-web-size/result.json.gz");
    let folder = record.with_file_name("deploy");
    let record = record.display().to_string();
    let to = if std::env::var_os("LOADLINE_UPDATE").is_some() {
        folder.clone()
    } else {
        place.path().join("deploy")
    };
    let to_text = to.display().to_string();
    let words = [
        "emit",
        &record,
        "--to",
        &to_text,
        "--replicas",
        "2",
        "--force",
    ];
    let output = loadline(place.path(), &words);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(files(&folder), files(&to));
    for name in files(&folder) {
        let read = |folder: &Path| fs::read_to_string(folder.join(&name)).expect("a text");
        assert!(
            read(&folder) == read(&to),
            "{name} differs; LOADLINE_UPDATE=1 updates it"
        );
    }
}

/// The options are in the image's command, and `lint` knows them all the same. Neither does it object to
/// a CPU request without a limit.
#[test]
fn lint_objects_to_nothing_that_emit_writes() {
    let place = tempfile::tempdir().expect("a directory");
    let record = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../records/2026-11-30-spring-web-size/result.json.gz");
    let request_only = changed_copy(place.path(), &record, |json| {
        let request_only = |of: &mut serde_json::Value| {
            of["configuration"]["cpu_millicpus"] = serde_json::Value::Null;
            of["configuration"]["cpu_request_millicpus"] = 800.into();
        };
        request_only(&mut json["recommendation"]);
        let trials = json["trials"].as_array_mut().expect("trials");
        trials.iter_mut().for_each(request_only);
    });
    let record = record.display().to_string();
    for (result, more) in [
        (&record, &[][..]),
        (&record, &["--for", "kubernetes"]),
        (&request_only, &["--for", "kubernetes"]),
    ] {
        let words = ["emit", result, "--to", "deploy", "--force"];
        let emitted = loadline(place.path(), &[&words[..], more].concat());
        assert!(emitted.status.success(), "{}", said(&emitted));
        let linted = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["lint", "deploy/kubernetes.yaml"])
            .current_dir(place.path())
            .output()
            .expect("it starts");
        let text = String::from_utf8_lossy(&linted.stdout);
        assert!(linted.status.success(), "{result} {more:?}: {text}");
        for finding in ["error", "QoS class"] {
            assert!(!text.contains(finding), "{result} {more:?}: {text}");
        }
    }
}

#[test]
fn emit_ships_no_command_that_a_file_brings_along() {
    let place = tempfile::tempdir().expect("a directory");
    let emitted = |option: &str, at: fn(&mut serde_json::Value, &str)| {
        let file = changed(place.path(), |json| at(json, option));
        loadline(place.path(), &["emit", &file, "--to", "deploy", "--force"])
    };
    let of_configuration = |json: &mut serde_json::Value, option: &str| {
        let options = json["recommendation"]["configuration"]["jvm_options"].as_array_mut();
        let option = serde_json::json!({"text": option, "provenance": "user"});
        options.expect("options").push(option);
    };
    let of_command = |json: &mut serde_json::Value, option: &str| {
        let experiment = json["experiment"].as_str().expect("a text");
        let with = format!("\"java\",\n    \"{option}\",");
        json["experiment"] = experiment.replace("\"java\",", &with).into();
    };
    let of_variable = |json: &mut serde_json::Value, option: &str| {
        let (begin, end) = option.split_at(8);
        let value = format!("-Xss1m {begin}\\\"{end}\\\"");
        add_to_app(
            json,
            &format!("env = {{ JAVA_TOOL_OPTIONS = \"{value}\" }}"),
        );
    };
    let of_image = |json: &mut serde_json::Value, option: &str| {
        add_to_app(json, "image = \"orders:1\"");
        let experiment = json["experiment"].as_str().expect("a text");
        let command = experiment.find("command = ").expect("a command");
        let end = command + experiment[command..].find("]\n").expect("its end");
        json["experiment"] = [&experiment[..command], &experiment[end + 2..]]
            .concat()
            .into();
        json["machine"]["image"] = serde_json::json!({
            "engine": "podman", "reference": "orders:1", "id": "sha256:1", "tool_options": option,
        });
    };
    for option in [
        "-XX:OnOutOfMemoryError=touch owned",
        "-XX:OnError=id",
        "-XX:Flags=x",
    ] {
        for at in [of_configuration, of_command, of_variable, of_image] {
            let output = emitted(option, at);
            assert_eq!(output.status.code(), Some(2), "{option}: {}", said(&output));
            let name = option.split('=').next().expect("a name");
            assert!(
                said(&output).contains(name) && said(&output).contains("hint: "),
                "{}",
                said(&output)
            );
            assert!(!place.path().join("deploy").exists(), "{option}");
        }
    }
    let agent = emitted("-agentlib:jdwp=transport=dt_socket", of_configuration);
    assert!(agent.status.success(), "{}", said(&agent));
    let warned = "warning: the file ships `-agentlib:jdwp=transport=dt_socket`";
    assert!(said(&agent).contains(warned), "{}", said(&agent));
}
