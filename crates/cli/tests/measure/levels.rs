//! Several applications in one experiment: a jar, images and servers without a JVM, each a level.
//! Checks measurements, report, and the files of `emit` for the winner.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::applications::ping;
use crate::engines::{Engine, IMAGE};
use crate::lab::Lab;
use crate::load_commands::python;
use crate::runner::{Case, Outcome};
use crate::traces::assert_nothing_left;

pub const CASES: [Case; 3] = [
    (
        "a_jar_an_image_and_a_native_server_are_one_experiment",
        a_jar_an_image_and_a_native_server_are_one_experiment,
    ),
    (
        "what_won_among_several_applications_is_shipped",
        what_won_among_several_applications_is_shipped,
    ),
    (
        "a_start_has_its_cpu_until_it_is_ready",
        a_start_has_its_cpu_until_it_is_ready,
    ),
];

/// Answers `/ready` well under a quota of 2 CPUs only, and `/` under one of half a CPU only.
const QUOTA: &str = r#"
import http.server
def quota():
    for line in open('/proc/self/cgroup'):
        _, controllers, path = line.strip().split(':', 2)
        for name in ('cpu' + path + '/cpu.cfs_quota_us', path + '/cpu.max'):
            if controllers in ('', 'cpu', 'cpu,cpuacct'):
                try: return int(open('/sys/fs/cgroup/' + name).read().split()[0])
                except OSError: pass
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        wanted = {'/ready': 200000, '/': 50000}[self.path]
        self.send_response(200 if quota() == wanted else 503)
        self.send_header('Content-Length', '0')
        self.end_headers()
http.server.ThreadingHTTPServer(('', 8080), Answer).serve_forever()
"#;

fn a_start_has_its_cpu_until_it_is_ready() -> Outcome {
    let Some(python) = python() else {
        return Some("no /usr/bin/python3".into());
    };
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return Some("this machine has one CPU".into());
    }
    let run = |limits: &[&str]| {
        let lab = Lab::new();
        let ended = lab
            .call("run")
            .args(&["--wait", "--accept-noise", "--cpu", "500m", "--full"])
            .args(&["--url", "http://localhost:8080/", "--ready", "/ready"])
            .args(&["--rate", "20/s", "--slo", "errors<50%"])
            .args(&["--warm-up", "0s", "--duration", "2s"])
            .args(limits)
            .args(&["--", python, "-c", QUOTA])
            .into_end();
        (lab, ended)
    };
    let (lab, ended) = run(&["--start-cpu", "2"]);
    ended.expect_code(0).prints(&["500m CPU (2 until ready)"]);
    let configuration = &lab.trial()["configuration"];
    assert_eq!(configuration["start_cpu_millicpus"], 2000);
    let (_, ended) = run(&["--start-cpu", "9999"]);
    ended.says(&["a limit of 9999 CPUs, and there are", "--start-cpu"]);
    None
}

fn a_jar_an_image_and_a_native_server_are_one_experiment() -> Outcome {
    let (engine, jar) = match Engine::podman().and_then(|engine| Ok((engine, ping()?))) {
        Ok(found) => found,
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    let native = lab.application(&["serve"]);
    let file = format!(
        "slo = 'errors<99%'\n[app]\ncommand = ['java', '-jar', {jar:?}]\n[limits]\ncpu = '1'\nmemory = '128Mi'\n[load]\nurl = 'http://localhost:8080/'\nrate = '50/s'\nmeasure = '300ms'\nwarm-up = '0s'\n[run]\naccept-noise = true\n[[factor]]\nname = 'application'\nlevels = [{{ label = 'jar' }}, {{ label = 'image', image = '{IMAGE}', engine = 'podman' }}, {{ label = 'native', command = {native:?} }}]\n"
    );
    fs::write(lab.path().join("three.toml"), file).expect("a file");
    let call = lab.call("run").args(&["--wait", "three.toml"]);
    let ended = engine.environment(call).into_end().expect_code(0);
    ended
        .says(&["started by podman"])
        .prints(&["jar", "image", "native", "3 of 3"]);
    let result = lab.result("last");
    let of = |label: &str| {
        let trials = result["trials"].as_array().expect("an array");
        let found = trials.iter().find(|t| t["configuration"]["label"] == label);
        found.expect("it ran").clone()
    };
    for label in ["jar", "image"] {
        assert_eq!(
            of(label)["evidence"]["gc"]["collector"],
            "Serial",
            "{label}"
        );
    }
    let native = of("native");
    assert_eq!(native["evidence"]["gc"], Value::Null, "it is no JVM");
    let peak = &native["evidence"]["cgroup"]["peak_memory_bytes"];
    assert!(peak.as_u64() > Some(0), "{peak}");
    assert_eq!(result["machine"]["level_images"][0]["reference"], IMAGE);
    let page = lab.path().join("report.html");
    let call = lab.call("report").arg("--output").arg(&page).arg("last");
    call.into_end().expect_code(0);
    let page = fs::read_to_string(page).expect("a page");
    assert!(
        page.contains("native"),
        "the report names every application"
    );
    assert_nothing_left(&lab, &[], &Default::default());
    None
}

/// A jar, an image, and the same image with a native server in it: whichever is the answer, its files
/// are its own. That server without its image has none, and the output says why.
fn what_won_among_several_applications_is_shipped() -> Outcome {
    let (engine, jar) = match Engine::podman().and_then(|engine| Ok((engine, ping()?))) {
        Ok(found) => found,
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    let file = format!(
        "slo = 'errors<99%'\n[app]\ncommand = ['java', '-jar', {jar:?}]\n[limits]\ncpu = '1'\n[load]\nurl = 'http://localhost:8080/'\nrate = '50/s'\nmeasure = '300ms'\nwarm-up = '0s'\n[run]\naccept-noise = true\n[search]\nmin-memory = '96Mi'\nmax-memory = '128Mi'\nstep = '32Mi'\nconfirm = 1\nprove = 1\n[[factor]]\nname = 'application'\nlevels = [{{ label = 'jar', jvm = ['-Xmx24m'] }}, {{ label = 'image', image = '{IMAGE}', engine = 'podman', jvm = ['-Xmx16m'] }}, {{ label = 'native', image = '{IMAGE}', engine = 'podman', command = ['/bin/measure', 'zoo', 'serve'] }}]\n"
    );
    fs::write(lab.path().join("three.toml"), file).expect("a file");
    let call = lab.call("size").args(&["--wait", "--file=three.toml"]);
    let ended = engine.environment(call).into_end().expect_code(0);
    ended.prints(&["Which application needs how much?"]);
    let result = lab.result("last");
    let exported = lab.path().join("exported.json");

    let jar = emitted(&lab, &result, "jar", &exported);
    assert_eq!(
        jar.names,
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
    assert!(jar.text("jvm.options").contains("-Xmx24m"));
    assert!(jar.text("Dockerfile").contains("ping.jar"));

    let image = emitted(&lab, &result, "image", &exported);
    assert_eq!(
        image.names,
        [
            "evidence.md",
            "java-tool-options.env",
            "jvm.options",
            "kubernetes.yaml",
            "loadline.profile"
        ]
    );
    let digest = result["machine"]["level_images"][0]["pinned"]
        .as_str()
        .expect("it has one");
    let manifest = image.text("kubernetes.yaml");
    assert!(manifest.contains(digest), "{manifest}");
    assert!(
        manifest.contains("-Xmx16m") && !manifest.contains("-Xmx24m"),
        "{manifest}"
    );

    let native = emitted(&lab, &result, "native", &exported);
    assert_eq!(
        native.names,
        ["evidence.md", "kubernetes.yaml"],
        "there is no JVM for options"
    );
    let manifest = native.text("kubernetes.yaml");
    assert!(
        manifest.contains(digest) && manifest.contains("zoo"),
        "{manifest}"
    );
    assert!(
        !manifest.contains("JAVA") && !manifest.contains("-Xmx"),
        "{manifest}"
    );

    let mut bare = result.clone();
    let level = level_of(&mut bare, "native");
    level["configuration"]["application"] =
        serde_json::json!({ "command": lab.application(&["serve"]) });
    let won = answered_by(&bare, "native", &exported);
    let call = lab.call("emit").arg("--to").arg(lab.path().join("server"));
    let ended = call.arg(won).into_end().expect_code(2);
    ended.says(&[
        "cannot tell the jar of the command",
        "hint: a program other than java is shipped as an image",
    ]);
    assert_nothing_left(&lab, &[], &Default::default());
    None
}

/// Files that `emit` wrote.
struct Emitted {
    directory: PathBuf,
    names: Vec<String>,
}

impl Emitted {
    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.directory.join(name)).expect("it was written")
    }
}

/// The answer of one of its applications.
fn level_of<'a>(result: &'a mut Value, label: &str) -> &'a mut Value {
    let levels = &mut result["recommendation"]["by_level"];
    let mut levels = levels.as_array_mut().expect("several").iter_mut();
    let level = levels.find(|level| level["application"] == label);
    level.expect("it was searched")
}

/// The result with the size that was found for one of its applications as its answer.
fn answered_by<'a>(result: &Value, label: &str, to: &'a Path) -> &'a Path {
    let mut result = result.clone();
    let won = level_of(&mut result, label)["configuration"].clone();
    result["recommendation"]["configuration"] = won;
    fs::write(to, result.to_string()).expect("a file");
    to
}

fn emitted(lab: &Lab, result: &Value, label: &str, exported: &Path) -> Emitted {
    let won = answered_by(result, label, exported);
    let directory = lab.path().join(label);
    let call = lab.call("emit").arg("--to").arg(&directory).arg(won);
    call.into_end().expect_code(0);
    let entries = fs::read_dir(&directory).expect("a directory").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    Emitted { directory, names }
}
