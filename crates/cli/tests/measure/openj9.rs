//! A real OpenJ9 next to HotSpot: an experiment's factor, its records, and `explain`; a separate
//! size for each.

use std::fs;

use crate::applications::ping;
use crate::lab::Lab;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 2] = [
    (
        "openj9_is_compared_with_hotspot_and_explained",
        compared_and_explained,
    ),
    ("openj9_and_hotspot_are_sized_each", sized_each),
];

/// The feature release of an OpenJ9 below /usr/lib/jvm.
fn installed() -> Option<String> {
    let homes = fs::read_dir("/usr/lib/jvm").ok()?.flatten();
    let mut homes = homes.filter(|home| home.path().join("lib/j9vm").is_dir());
    let release = fs::read_to_string(homes.next()?.path().join("release")).ok()?;
    let version = release.split_once("JAVA_VERSION=\"")?.1;
    let feature = version.split(['.', '"', '-', '+']).next()?;
    Some(feature.to_owned())
}

/// A lab with the smallest workload, and the name of the OpenJ9; `Err` is why there is none.
fn with_openj9() -> Result<(Lab, String), String> {
    let feature = installed().ok_or("no OpenJ9 below /usr/lib/jvm")?;
    let lab = Lab::new();
    fs::copy(ping()?, lab.path().join("ping.jar")).expect("a copy");
    Ok((lab, format!("openj9-{feature}")))
}

fn compared_and_explained() -> Outcome {
    let (lab, openj9) = match with_openj9() {
        Ok(there) => there,
        Err(reason) => return Some(reason),
    };
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
levels = ["17", "{openj9}"]
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

fn sized_each() -> Outcome {
    let (lab, openj9) = match with_openj9() {
        Ok(there) => there,
        Err(reason) => return Some(reason),
    };
    let call = lab.call("size").args(&[
        "--wait",
        "--accept-noise",
        &format!("--jdk=17,{openj9}"),
        "--cpu=1",
        "--min-memory=124Mi",
        "--max-memory=128Mi",
        "--prove=1",
        "--slo=start<60s",
        "--rate=20/s",
        "--warm-up=0s",
        "--measure=1s",
        "--url=http://localhost:8080/",
        "--",
        "java",
        "-jar",
        "ping.jar",
    ]);
    let ended = call.into_end().expect_code(0);
    ended.prints(&["Which JDK needs how much?", &format!("{openj9} ")]);
    let result = lab.result("last");
    let levels = &result["recommendation"]["by_level"];
    for (index, jdk) in ["17", &openj9].into_iter().enumerate() {
        assert_eq!(levels[index]["jdk"], jdk, "{levels}");
        assert_eq!(levels[index]["proof"]["passes"], 1, "{levels}");
    }
    let trials = result["trials"].as_array().expect("trials");
    for trial in trials {
        let is_openj9 = trial["configuration"]["jdk"] == openj9.as_str();
        let collector = &trial["evidence"]["gc"]["collector"];
        assert_eq!(collector == "gencon", is_openj9, "{trial}");
    }
    None
}
