//! Patches and values of `emit`, applied to foreign manifests and read back: measured values
//! arrive, and everything else is unchanged.
//!
//! A strategic merge is applied here by its rules (merge keys `name` of containers and variables,
//! `null` takes a field away), and by the real kustomize if it is installed.

use std::path::Path;
use std::process::Command as Program;

use loadline_analysis::record::ValueProvenance;
use loadline_report::ResultView;
use loadline_report::emit::{
    EmitError, EmittedWorkload, ImagePinning, PatchFiles, ProductionApplication, StartCommand,
    ValuePath, patch, values,
};
use loadline_sizing::options::words;
use serde_json::{Value, json};

use crate::artefacts::{application, text};
use crate::fixture;
use crate::kubernetes::errors;

const PINNED: &str = "registry.example:5000/shop/orders@sha256:00ff";

const MANIFEST: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata:
  name: orders
  namespace: shop
  annotations: {team: blue}
spec:
  replicas: 3
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders}}
    spec:
      initContainers:
        - {name: wait, image: busybox, command: [sleep, "1"]}
      containers:
        - name: proxy
          image: envoy:1
          env: [{name: JAVA_TOOL_OPTIONS, value: -Xmx9g}]
          resources: {limits: {memory: 64Mi}}
        - name: app
          image: orders:1.4
          ports: [{name: web, containerPort: 8080}]
          env:
            - {name: MODE, value: production}
            - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: HOST, value: "$(POD).shop"}
            - {name: JAVA_TOOL_OPTIONS, value: "-Dhost=$(HOST) -Xmx512m '-Dgreeting=it is' -XX:+UseG1GC"}
            - {name: LATER, value: "$(MODE)"}
          resources:
            requests: {cpu: 250m, memory: 256Mi}
            limits: {memory: 1Gi, ephemeral-storage: 1Gi}
          readinessProbe:
            httpGet: {path: /ready, port: web}
          volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, emptyDir: {}}]
"#;

/// What the trials had.
const OPTIONS: [&str; 5] = [
    "-XX:+UseSerialGC",
    "-XX:MaxMetaspaceSize=88m",
    "-XX:ReservedCodeCacheSize=48m",
    "-Xmx120m",
    "-Dgreeting=it's $(MODE) b",
];

fn view() -> ResultView {
    let mut view = fixture::search();
    let recommendation = view.recommendation.as_mut().expect("a recommendation");
    let configuration = &mut recommendation.configuration;
    let more = OPTIONS[3..].iter();
    configuration
        .jvm_options
        .extend(more.map(|o| fixture::option(o, ValueProvenance::Measured)));
    for (name, value) in [("MALLOC_ARENA_MAX", "2"), ("POD", "fixed $(x)")] {
        configuration.env.insert(name.to_owned(), value.to_owned());
    }
    view
}

fn image() -> ProductionApplication {
    let variables = [
        ("MODE", "test"),
        ("PORT", "8080"),
        ("DB_PASSWORD", "hunter2"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    ProductionApplication {
        image: PINNED.to_owned(),
        measured_image: Some(ImagePinning::Yes),
        command: StartCommand::in_image(&[]),
        env: variables.into(),
        ..application()
    }
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("it is YAML")
}

fn workload(manifest: &Value) -> Result<EmittedWorkload, EmitError> {
    EmittedWorkload::find_container(std::slice::from_ref(manifest), None, Some("app"))
}

fn patched(manifest: &Value) -> Result<PatchFiles, EmitError> {
    patch(&view(), &image(), &workload(manifest)?)
}

/// A strategic merge, as far as these manifests need it.
fn merged(base: &Value, patch: &Value) -> Value {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            let mut out = base.clone();
            for (key, value) in patch {
                if value.is_null() {
                    out.remove(key);
                } else {
                    let there = base.get(key).unwrap_or(&Value::Null);
                    out.insert(key.clone(), merged(there, value));
                }
            }
            out.into()
        }
        (Value::Array(base), Value::Array(patch)) => {
            let mut out = base.clone();
            for value in patch {
                assert!(value["name"].is_string(), "the merge key: {value}");
                match out.iter_mut().find(|own| own["name"] == value["name"]) {
                    Some(own) => *own = merged(own, value),
                    None => out.push(merged(&json!({}), value)),
                }
            }
            out.into()
        }
        (_, Value::Object(_)) => merged(&json!({}), patch),
        _ => patch.clone(),
    }
}

fn applied(manifest: &Value) -> Value {
    let patched = patched(manifest).expect("it can be patched");
    merged(manifest, &yaml(&text(&patched.artefacts, "patch.yaml")))
}

fn app(manifest: &Value) -> &Value {
    let containers = &manifest["spec"]["template"]["spec"]["containers"];
    let all = containers.as_array().expect("a list");
    all.iter()
        .find(|c| c["name"] == "app")
        .expect("it is there")
}

fn variable<'a>(container: &'a Value, name: &str) -> &'a Value {
    let all = container["env"].as_array().expect("a list");
    let mut found = all.iter().filter(|v| v["name"] == name);
    let first = found.next().unwrap_or(&Value::Null);
    assert!(found.next().is_none(), "{name} twice");
    first
}

/// A CPU request that was measured without a limit replaces the limit of a container.
#[test]
fn a_measured_request_takes_the_limit_away() {
    let manifest = MANIFEST.replace("limits: {memory: 1Gi,", "limits: {cpu: 2, memory: 1Gi,");
    let manifest = yaml(&manifest);
    let mut view = view();
    let request = Some("300m".parse().expect("CPUs"));
    let answer = &mut view
        .recommendation
        .as_mut()
        .expect("an answer")
        .configuration;
    (answer.cpu, answer.cpu_request) = (None, request);
    let target = workload(&manifest).expect("a workload");
    let patched = patch(&view, &image(), &target).expect("it can be patched");
    let text = text(&patched.artefacts, "patch.yaml");
    let applied = merged(&manifest, &yaml(&text));
    let resources = &app(&applied)["resources"];
    assert_eq!(resources["requests"]["cpu"], "300m");
    assert_eq!(resources["limits"]["cpu"], Value::Null, "{text}");
    assert!(
        text.contains("is removed: the CPU request was measured without a limit"),
        "{text}"
    );
}

/// A request that was measured below its limit: the patch has both.
#[test]
fn a_request_below_its_limit_is_patched() {
    let manifest = yaml(MANIFEST);
    let mut view = view();
    let cpus = |text: &str| Some(text.parse().expect("CPUs"));
    let answer = &mut view
        .recommendation
        .as_mut()
        .expect("an answer")
        .configuration;
    (answer.cpu, answer.cpu_request) = (cpus("500m"), cpus("300m"));
    let target = workload(&manifest).expect("a workload");
    let patched = patch(&view, &image(), &target).expect("it can be patched");
    let text = text(&patched.artefacts, "patch.yaml");
    let applied = merged(&manifest, &yaml(&text));
    let patched = &patched.container["resources"];
    for resources in [&app(&applied)["resources"], patched] {
        assert_eq!(resources["requests"]["cpu"], "300m");
        assert_eq!(resources["limits"]["cpu"], "500m", "{text}");
    }
}

#[test]
fn what_was_measured_arrives() {
    let manifest = yaml(MANIFEST);
    let applied = applied(&manifest);
    assert_eq!(errors(&applied), Vec::<String>::new());
    let container = app(&applied);
    for kind in ["requests", "limits"] {
        assert_eq!(container["resources"][kind]["memory"], "212Mi");
        assert_eq!(container["resources"][kind]["cpu"], "1");
    }
    let options = variable(container, "JAVA_TOOL_OPTIONS")["value"].as_str();
    // Kubernetes takes `$$(` for `$(`.
    let options = options.expect("a text").replace("$$(", "$(");
    let options = words::split_environment(&options).expect("a JVM reads it");
    assert_eq!(options[0], "-Dhost=$(HOST)");
    assert_eq!(options[1..], OPTIONS);
    assert_eq!(variable(container, "MALLOC_ARENA_MAX")["value"], "2");
    assert_eq!(
        variable(container, "POD"),
        &json!({"name": "POD", "value": "fixed $$(x)"}),
        "a recommended value takes the place of a reference"
    );
    assert_eq!(variable(container, "PORT")["value"], "8080");
    assert_eq!(container["image"], PINNED);
    assert_eq!(
        applied["metadata"]["annotations"]["loadline/result"],
        view().id
    );
    let probe = &container["startupProbe"];
    assert_eq!(probe["httpGet"], json!({"path": "/ready", "port": "web"}));
    assert!(probe["failureThreshold"].as_u64() >= Some(3));
}

#[test]
fn everything_else_is_what_it_was() {
    let manifest = yaml(MANIFEST);
    let mut applied = applied(&manifest);
    // What changed is put back by name; the rest has to be equal, order and all.
    let was = app(&manifest).clone();
    let containers = &mut applied["spec"]["template"]["spec"]["containers"];
    let container = &mut containers.as_array_mut().expect("a list")[1];
    let fields = container.as_object_mut().expect("a map");
    fields.remove("startupProbe").expect("it was added");
    fields.insert("image".to_owned(), was["image"].clone());
    for (kind, name) in [
        ("requests", "cpu"),
        ("requests", "memory"),
        ("limits", "memory"),
    ] {
        fields["resources"][kind][name] = was["resources"][kind][name].clone();
    }
    let limits = fields["resources"]["limits"]
        .as_object_mut()
        .expect("a map");
    limits.remove("cpu").expect("it was added");
    let env = fields["env"].as_array_mut().expect("a list");
    env.retain(|v| v["name"] != "MALLOC_ARENA_MAX" && v["name"] != "PORT");
    for variable in env.iter_mut() {
        let own = was["env"].as_array().expect("a list").iter();
        let mut own = own.filter(|own| own["name"] == variable["name"]);
        if ["JAVA_TOOL_OPTIONS", "POD"].contains(&variable["name"].as_str().unwrap_or_default()) {
            *variable = own.next().expect("it was there").clone();
        }
    }
    let annotations = applied["metadata"]["annotations"].as_object_mut();
    let annotations = annotations.expect("a map");
    annotations.remove("loadline/result");
    annotations.remove("loadline/evidence");
    assert_eq!(
        annotations.remove("loadline/outside-heap"),
        Some(json!("92Mi"))
    );
    assert_eq!(applied, manifest);
}

#[test]
fn what_was_replaced_and_what_stays_is_said() {
    let patched = patched(&yaml(MANIFEST)).expect("it can be patched");
    insta::assert_snapshot!(patched.notes.join("\n"), @"
    DB_PASSWORD was set in the trials and is a secret: the manifest has to set it.
    MODE stays as it is; it had another value in the trials.
    POD gets the value that was recommended; it had another one.
    -Dhost=$(HOST) stays; what it stands for was not looked at.
    -Xmx512m of the file is replaced by -Xmx120m, which was measured.
    -Dgreeting=it is of the file is replaced by -Dgreeting=it's $(MODE) b, which was measured.
    -XX:+UseG1GC of the file is replaced by -XX:+UseSerialGC, which was measured.
    ");
    let said = text(&patched.artefacts, "patch.yaml");
    for note in &patched.notes {
        assert!(said.contains(&format!("# {note}\n")), "{note}\n{said}");
    }
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn the_real_kustomize_comes_to_the_same() {
    let name = "patches::the_real_kustomize_comes_to_the_same";
    let tools: [&[&str]; 2] = [&["kustomize", "build"], &["kubectl", "kustomize"]];
    let runs = |tool: &&&[&str]| {
        let help = Program::new(tool[0])
            .args(&tool[1..])
            .arg("--help")
            .output();
        help.is_ok_and(|output| output.status.success())
    };
    let Some(tool) = tools.iter().find(runs) else {
        println!("SKIP {name}: neither kustomize nor kubectl in PATH");
        return;
    };
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    let write = |path: &Path, text: &str| std::fs::write(path, text).expect("writable");
    std::fs::create_dir(at("component")).expect("a directory");
    let manifest = yaml(MANIFEST);
    for artefact in patched(&manifest).expect("it can be patched").artefacts {
        write(&at("component").join(artefact.name), &artefact.text);
    }
    write(&at("orders.yaml"), MANIFEST);
    write(
        &at("kustomization.yaml"),
        "resources: [orders.yaml]\ncomponents: [component]\n",
    );
    let output = Program::new(tool[0])
        .args(&tool[1..])
        .arg(place.path())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let built = yaml(&String::from_utf8_lossy(&output.stdout));
    // Kubernetes expands what stands before.
    let env = app(&built)["env"].as_array().expect("a list");
    let at = |name: &str| env.iter().position(|v| v["name"] == name);
    assert!(
        at("POD") < at("HOST") && at("HOST") < at("JAVA_TOOL_OPTIONS"),
        "{env:?}"
    );
    assert_eq!(by_name(built), by_name(applied(&manifest)), "{tool:?}");
}

/// kustomize puts patched entries first; here they keep their place.
fn by_name(mut manifest: Value) -> Value {
    let containers = &mut manifest["spec"]["template"]["spec"]["containers"];
    for container in containers.as_array_mut().into_iter().flatten() {
        let env = container["env"].as_array_mut().into_iter();
        env.for_each(|all| all.sort_by_key(|v| v["name"].to_string()));
    }
    if let Some(all) = containers.as_array_mut() {
        all.sort_by_key(|container| container["name"].to_string());
    }
    manifest
}

#[test]
fn a_second_patch_changes_nothing_more() {
    let once = applied(&yaml(MANIFEST));
    assert_eq!(applied(&once), once);
}

#[test]
fn a_bare_container_gets_its_probes_and_a_sparse_one_nothing_wrong() {
    let mut manifest = yaml(MANIFEST);
    let container = |manifest: &mut Value, fields: Value| {
        manifest["spec"]["template"]["spec"]["containers"] = json!([fields]);
    };
    container(&mut manifest, json!({"name": "app", "image": "orders:1"}));
    let applied_to = applied(&manifest);
    assert_eq!(errors(&applied_to), Vec::<String>::new());
    for probe in ["startupProbe", "readinessProbe"] {
        let asked = &app(&applied_to)[probe]["httpGet"];
        assert_eq!(asked, &json!({"path": "/health", "port": 8080}), "{probe}");
    }
    // A port that the container does not have is asked by no probe.
    let ports = json!([{"containerPort": 9090}]);
    container(
        &mut manifest,
        json!({"name": "app", "image": "orders:1", "ports": ports}),
    );
    let bare = applied(&manifest);
    assert!(app(&bare).get("readinessProbe").is_none());
    assert!(app(&bare).get("startupProbe").is_none());
    // A probe that waits longer than was measured stays.
    let patient = json!({"exec": {"command": ["true"]}, "failureThreshold": 900});
    container(
        &mut manifest,
        json!({"name": "app", "image": "orders:1", "startupProbe": patient}),
    );
    assert_eq!(app(&applied(&manifest))["startupProbe"], patient);
    let hasty = json!({"exec": {"command": ["true"]}, "failureThreshold": 1, "periodSeconds": 1});
    container(
        &mut manifest,
        json!({"name": "app", "image": "orders:1", "startupProbe": hasty}),
    );
    let changed = applied(&manifest);
    assert_eq!(errors(&changed), Vec::<String>::new());
    let probe = &app(&changed)["startupProbe"];
    assert_eq!(probe["exec"], hasty["exec"]);
    assert!(probe["failureThreshold"].as_u64() > Some(1));
}

#[test]
fn what_would_not_arrive_is_refused() {
    let with = |field: &str, value: Value| {
        let mut manifest = yaml(MANIFEST);
        manifest["spec"]["template"]["spec"]["containers"][1][field] = value;
        let error = patched(&manifest).expect_err(field);
        assert!(!error.emit_hint().is_empty());
        error.to_string()
    };
    let said = with("args", json!(["-Xmx1g"]));
    assert!(said.starts_with("-Xmx1g in args[0] wins over"), "{said}");
    let from = json!([{"name": "JAVA_TOOL_OPTIONS", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}]);
    assert!(with("env", from).contains("comes from elsewhere"));
    let secret = json!([{"name": "JAVA_TOOL_OPTIONS", "value": "-Dpassword=hunter2"}]);
    let said = with("env", secret);
    assert!(
        said.contains("hold a secret") && !said.contains("hunter2"),
        "{said}"
    );
}

const VALUES: &str = r#"
replicaCount: 2
app:
  image: {registry: docker.io, repository: shop/orders, tag: "1.4"}
  javaOpts: "-Xmx512m -Dteam=blue"
  resources: {}
  extraEnv: [{name: MODE, value: production}]
"#;

fn places(texts: &[&str]) -> Vec<ValuePath> {
    let place = |text: &&str| ValuePath::from_assignment(text).expect("a place");
    texts.iter().map(place).collect()
}

/// How Helm lays values over others: maps are merged, everything else is replaced.
fn over(base: &Value, values: &Value) -> Value {
    match (base, values) {
        (Value::Object(base), Value::Object(values)) => {
            let mut out = base.clone();
            for (key, value) in values {
                let there = base.get(key).unwrap_or(&Value::Null);
                out.insert(key.clone(), over(there, value));
            }
            out.into()
        }
        _ => values.clone(),
    }
}

#[test]
fn a_chart_gets_its_values_at_its_own_paths() {
    let own = yaml(VALUES);
    let wanted = places(&[
        "resources=app.resources",
        "java-options=app.javaOpts",
        "env=app.extraEnv",
        "image=app.image",
        "annotations=app.pod\\.annotations",
        "startup-probe=app.startupProbe",
    ]);
    let written = values(&view(), &image(), &own, &wanted).expect("all have a place");
    let after = over(&own, &yaml(&text(&written.artefacts, "values.yaml")));
    let app = &after["app"];
    assert_eq!(after["replicaCount"], 2);
    assert_eq!(app["resources"]["limits"]["memory"], "212Mi");
    let options = app["javaOpts"]
        .as_str()
        .expect("a text")
        .replace("$$(", "$(");
    let options = words::split_environment(&options).expect("a JVM reads it");
    assert_eq!(options[0], "-Dteam=blue");
    assert_eq!(options[1..], OPTIONS);
    assert_eq!(
        variable(&json!({"env": app["extraEnv"]}), "MODE")["value"],
        "production"
    );
    assert_eq!(
        variable(&json!({"env": app["extraEnv"]}), "MALLOC_ARENA_MAX")["value"],
        "2"
    );
    assert_eq!(
        app["image"],
        json!({"registry": "registry.example:5000", "repository": "shop/orders@sha256", "tag": "00ff"})
    );
    assert_eq!(app["pod.annotations"]["loadline/result"], view().id);
    assert!(app["startupProbe"]["httpGet"].is_object());
    let said = written.notes.join("\n");
    assert!(
        said.contains("-Xmx512m of the file is replaced by -Xmx120m"),
        "{said}"
    );
    assert!(said.contains("no app.startupProbe"), "{said}");
}

#[test]
fn values_without_a_place_are_refused_or_named() {
    let refused = |texts: &[&str], own: &str| {
        let error = values(&view(), &image(), &yaml(own), &places(texts)).expect_err(own);
        assert!(!error.emit_hint().is_empty());
        error.to_string()
    };
    assert!(refused(&["resources=app.resources"], VALUES).contains("no place in the values"));
    let said = refused(&["java-options=app.resources"], VALUES);
    assert!(
        said.contains("app.resources of the values is not a text"),
        "{said}"
    );
    let said = refused(&["resources=app", "java-options=app.javaOpts"], VALUES);
    assert!(said.contains("cannot both be"), "{said}");
    let secret = "env: [{name: API_TOKEN, value: hunter2}]";
    let said = refused(&["env=env"], secret);
    assert!(
        said.contains("API_TOKEN") && !said.contains("hunter2"),
        "{said}"
    );
    for wrong in ["resources", "memory=a", "env=a..b", "env="] {
        assert!(ValuePath::from_assignment(wrong).is_err(), "{wrong}");
    }
    let own = yaml("resources: {limits: none, requests: [1]}\nenv: []\njavaOpts: -Xmx1g");
    let wanted = places(&["resources=resources", "env=env", "java-options=javaOpts"]);
    let written = values(&view(), &image(), &own, &wanted).expect("they are replaced");
    let after = text(&written.artefacts, "values.yaml");
    assert_eq!(yaml(&after)["resources"]["limits"]["memory"], "212Mi");
    // A map of variables is merged by Helm.
    let own = yaml("env: {MODE: production}");
    let written = values(&view(), &image(), &own, &places(&["env=env"])).expect("a map");
    let after = over(&own, &yaml(&text(&written.artefacts, "values.yaml")));
    assert_eq!(after["env"]["MODE"], "production");
    assert!(after["env"]["JAVA_TOOL_OPTIONS"].is_string());
}

#[test]
fn more_cpu_until_ready_goes_into_a_manifest_and_not_into_values() {
    let mut view = view();
    let answer = view.recommendation.as_mut().expect("an answer");
    answer.configuration.start_cpu = Some("4".parse().expect("CPUs"));
    for trial in &mut view.trials {
        trial.configuration.start_cpu = answer.configuration.start_cpu;
    }
    let mut manifest = yaml(MANIFEST);
    let kept = json!({"resourceName": "memory", "restartPolicy": "RestartContainer"});
    manifest["spec"]["template"]["spec"]["containers"][1]["resizePolicy"] = json!([kept]);
    let files = patch(&view, &image(), &workload(&manifest).expect("it is there"));
    let files = files.expect("a patch");
    let document = yaml(&text(&files.artefacts, "patch.yaml"));
    let policy = &document["spec"]["template"]["spec"]["containers"][0]["resizePolicy"];
    let added = json!({"resourceName": "cpu", "restartPolicy": "NotRequired"});
    assert_eq!(*policy, json!([kept, added]));
    assert!(
        files
            .notes
            .iter()
            .any(|note| note.contains("4 CPU until ready: the patch lets"))
    );
    let place = [
        "resources=resources",
        "java-options=java",
        "env=env",
        "image=image",
    ];
    let places = place.map(|place| ValuePath::from_assignment(place).expect("a place"));
    let chart = values(&view, &image(), &json!({}), &places).expect("values");
    assert!(
        chart
            .notes
            .iter()
            .any(|note| note.contains("4 CPU until ready: no value"))
    );
}
