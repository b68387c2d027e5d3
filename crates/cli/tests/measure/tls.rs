//! Real JVMs that serve HTTPS, over HTTP/1.1 and HTTP/2: the certificate is checked against the
//! roots of the load, and every answer says which protocol its request came by.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::lab::Lab;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 2] = [
    (
        "a_jvm_that_serves_https_is_measured_request_by_request",
        a_jvm_that_serves_https_is_measured_request_by_request,
    ),
    (
        "a_jvm_that_serves_http2_over_tls_is_measured_request_by_request",
        a_jvm_that_serves_http2_over_tls_is_measured_request_by_request,
    ),
];

const PASSWORD: &str = "changeit";

fn a_jvm_that_serves_https_is_measured_request_by_request() -> Outcome {
    let lab = Lab::new();
    if let Err(reason) = certificate(&lab) {
        return Some(reason);
    }
    let source = program(&lab, "Secure.java", include_str!("Secure.java"));
    measure(
        &lab,
        &["java", &source],
        "",
        "HTTP/1.1",
        "4 connections over TLS",
    );
    None
}

fn a_jvm_that_serves_http2_over_tls_is_measured_request_by_request() -> Outcome {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/workloads/tomcat.jar");
    if !built.is_file() {
        return Some("build/workloads/tomcat.jar is not there; `make workloads` builds it".into());
    }
    let lab = Lab::new();
    if let Err(reason) = certificate(&lab) {
        return Some(reason);
    }
    let jar = lab.path().join("tomcat.jar");
    fs::copy(built, &jar).expect("a copy");
    let source = program(&lab, "SecureHttp2.java", include_str!("SecureHttp2.java"));
    let command = ["java", "-cp", &jar.display().to_string(), &source];
    let said = "4 connections of 4 HTTP/2 streams over TLS";
    let how = "http2 = true\nstreams = 4\n";
    measure(&lab, &command, how, "HTTP/2.0", said);
    None
}

/// Runs one trial and reads its record: all that came is answered by this protocol.
fn measure(lab: &Lab, application: &[&str], how: &str, protocol: &str, said: &str) {
    let mark = format!("mark={}", lab.path().display());
    let store = lab.path().join("store.p12").display().to_string();
    let command = [application, &[&store, PASSWORD, &mark]].concat();
    let file = format!(
        r#"
slo = "GET /slow: errors<99%, errors<99%"
[app]
command = {command:?}
[load]
url = "https://localhost:8443/"
cacert = "root.pem"
rate = "100/s"
warm-up = "1s"
duration = "1s"
connections = 4
expect-body = "{protocol}"
{how}
[[load.request]]
weight = 1
path = "/fast"
[[load.request]]
weight = 1
path = "/slow"
[run]
accept-noise = true
"#
    );
    fs::write(lab.path().join("tls.toml"), file).expect("a file");
    let ended = lab
        .call("run")
        .args(&["--wait", "--full", "tls.toml"])
        .into_end();
    ended
        .expect_code(0)
        .says(&["PASS"])
        .prints(&["Each request", "GET /fast", "GET /slow"]);
    let result = lab.result("last");
    let load = result["load"].to_string();
    assert!(load.contains(said), "{load}");
    let trial = &result["trials"][0];
    let judged = &trial["evidence"]["load"][1];
    assert_eq!(judged["ok"], judged["scheduled"], "{trial}");
    let of_each = judged["by_request"].as_array().expect("each request");
    let names: Vec<_> = of_each.iter().map(|r| &r["name"]).collect();
    assert_eq!(names, ["GET /fast", "GET /slow"], "{trial}");
    for request in of_each {
        assert!(request["ok"].as_u64() > Some(0), "{request}");
        assert!(request["latency"].as_str() > Some(""), "{request}");
    }
}

/// A keystore for `localhost`, and its certificate as the root to trust; or why there is none.
fn certificate(lab: &Lab) -> Result<(), String> {
    let keytool = |arguments: &str| {
        let call = Command::new("keytool")
            .args(["-keystore", "store.p12", "-storepass", PASSWORD])
            .args(arguments.split(' '))
            .current_dir(lab.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output();
        let output = call.map_err(|e| format!("keytool of a JDK: {e}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "keytool {arguments}: {said}");
        Ok::<_, String>(())
    };
    keytool(
        "-genkeypair -storetype PKCS12 -keyalg EC -alias own -dname CN=localhost -ext san=dns:localhost -validity 2",
    )?;
    keytool("-exportcert -rfc -alias own -file root.pem")
}

/// A program of one source file, which `java` compiles when it starts it.
fn program(lab: &Lab, name: &str, text: &str) -> String {
    let path: PathBuf = lab.path().join(name);
    fs::write(&path, text).expect("a file");
    path.display().to_string()
}
