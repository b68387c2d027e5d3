//! A real OpenJ9 beside HotSpot: an experiment's factor, what its records hold, and `explain`.

use std::fs;
use std::path::Path;

use crate::lab::Lab;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 1] = [(
    "openj9_is_compared_with_hotspot_and_explained",
    compared_and_explained,
)];

/// The feature release of an OpenJ9 below /usr/lib/jvm.
fn installed() -> Option<String> {
    let homes = fs::read_dir("/usr/lib/jvm").ok()?.flatten();
    let mut homes = homes.filter(|home| home.path().join("lib/j9vm").is_dir());
    let release = fs::read_to_string(homes.next()?.path().join("release")).ok()?;
    let version = release.split_once("JAVA_VERSION=\"")?.1;
    let feature = version.split(['.', '"', '-', '+']).next()?;
    Some(feature.to_owned())
}

fn compared_and_explained() -> Outcome {
    let Some(feature) = installed() else {
        return Some("no OpenJ9 below /usr/lib/jvm".to_owned());
    };
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/workloads/ping.jar");
    if !built.is_file() {
        return Some("no build/workloads/ping.jar (make workloads)".to_owned());
    }
    let lab = Lab::new();
    fs::copy(built, lab.path().join("ping.jar")).expect("a copy");
    let experiment = format!(
        r#"
slo = "p99<5s"
[app]
command = ["java", "-jar", "ping.jar"]
[load]
url = "http://localhost:8080/"
requests = 50
warm-up = "0s"
[limits]
cpu = "1"
memory = "256Mi"
[run]
accept-noise = true
[[factor]]
name = "jdk"
levels = ["17", "openj9-{feature}"]
"#
    );
    fs::write(lab.path().join("exp.toml"), experiment).expect("a file");
    let call = lab.call("run").args(&["--wait", "--full", "exp.toml"]);
    let ended = call.into_end().expect_code(0);
    // Each level by its own name, in every table.
    let rows = |level: &str| {
        let of = |line: &&str| line.starts_with(level) && line.contains("PASS");
        ended.stdout.lines().filter(of).count()
    };
    let openj9 = format!("openj9-{feature}");
    assert_eq!((rows("17 "), rows(&openj9)), (1, 1), "{ended}");
    let result = lab.result("last");
    let trials = result["trials"].as_array().expect("trials");
    let gc = |name: &str| {
        let of = trials
            .iter()
            .find(|trial| trial["evidence"]["gc"]["collector"] == name);
        of.unwrap_or_else(|| panic!("no trial with {name}: {result}"))
    };
    let trial = gc("gencon");
    let evidence = &trial["evidence"]["gc"];
    let spans = evidence["pause_spans_ns"].as_array().expect("spans");
    let pauses = evidence["pauses"].as_u64().expect("a count");
    assert!(pauses > 0, "{evidence}");
    assert_eq!(spans.len() as u64, pauses, "{evidence}");
    let id = trial["id"].as_str().expect("an id");
    let explained = lab.call("explain").arg(id).into_end().expect_code(0);
    explained.prints(&[&openj9]);
    None
}
