//! `judge` with manifests: several files, directories, standard input, and invalid ones.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SHOP: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders}
spec:
  template:
    spec:
      containers:
        - name: app
          image: registry.example/orders:1
          env: [{name: JAVA_TOOL_OPTIONS, value: "-Xmx512m -XX:MaxRAMPercentage=75"}]
          resources:
            requests: {cpu: 500m, memory: 512M}
            limits: {cpu: 500m, memory: 512M}
        - {name: proxy, image: "envoyproxy/envoy:1"}
"#;

const BILLS: &str = "kind: StatefulSet\nmetadata: {name: bills}\nspec: {template: {spec: {containers: [{name: app, image: jdk, resources: {limits: {cpu: 1, memory: 1P}}}]}}}\n";

fn judge(place: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .arg("judge")
        .args(arguments)
        .current_dir(place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    // A command that refuses its arguments reads nothing.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn containers_are_named_checked_skipped_and_priced() {
    let place = tempfile::tempdir().expect("a directory");
    fs::write(place.path().join("shop.yaml"), SHOP).expect("writable");
    let output = judge(place.path(), &["--manifest", "shop.yaml"], "");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    insta::assert_snapshot!(out(&output), @"
    Deployment/orders app: error: over-committed: the heap may take 512Mi and everything else 248Mi: 760Mi in a limit of 488Mi (for a typical service)
      hint: lower the heap to 240Mi (-Xmx240m) or raise the limit to 760Mi; --measured RESULT takes the service's own
    Deployment/orders app: warning: -Xmx512m and -XX:MaxRAMPercentage=75 are both set: the percentage is ignored
      hint: keep one; a percentage follows the limit, -Xmx does not
    Deployment/orders app: note: QoS class Burstable
      hint: give every container of the pod requests equal to its limits: then the pod is Guaranteed and gets the measured resources
    Deployment/orders app: one pod of 500m vCPU, 488Mi costs $18.02 a month (fargate, us-east-1, 2026-03-10)
    Deployment/orders proxy: skipped: envoy has no JVM
    ");
}

#[test]
fn files_directories_and_standard_input_are_read_together() {
    let place = tempfile::tempdir().expect("a directory");
    let deploy = place.path().join("deploy");
    fs::create_dir(&deploy).expect("a directory");
    fs::write(deploy.join("shop.yaml"), SHOP).expect("writable");
    fs::write(deploy.join("service.yml"), "kind: Service\n").expect("writable");
    let output = judge(
        place.path(),
        &["--manifest", "deploy", "--manifest", "-"],
        BILLS,
    );
    let text = out(&output);
    for wanted in [
        "deploy/shop.yaml Deployment/orders app: warning: ",
        "deploy/shop.yaml Deployment/orders proxy: skipped: ",
        "- StatefulSet/bills app: ",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}{}", said(&output));
    }
}

#[test]
fn what_is_no_manifest_is_refused_with_what_to_do() {
    let place = tempfile::tempdir().expect("a directory");
    fs::create_dir(place.path().join("empty")).expect("a directory");
    for (text, why) in [
        ("a: [", "cannot read standard input"),
        ("", "it has no document"),
        (
            "kind: Service",
            "no document has spec.template.spec.containers",
        ),
        ("a: {{ .Values.b }}", "a template of a Helm chart"),
        (
            "kind: Pod\nspec: {containers: [{name: a, image: redis}]}",
            "no container runs a JVM: Pod/without-a-name a",
        ),
    ] {
        let output = judge(place.path(), &["--manifest", "-"], text);
        assert_eq!(output.status.code(), Some(2), "{text}: {}", said(&output));
        assert!(said(&output).contains(why), "{text}: {}", said(&output));
        assert!(
            said(&output).contains("hint: "),
            "{text}: {}",
            said(&output)
        );
    }
    for (path, why) in [
        ("empty", "no file in it ends in .yaml"),
        ("none.yaml", "No such file"),
    ] {
        let output = judge(place.path(), &["--manifest", path], "");
        assert_eq!(output.status.code(), Some(2), "{path}: {}", said(&output));
        assert!(said(&output).contains(why), "{path}: {}", said(&output));
    }
}
