//! Unusual starts of images, with both engines: measured, or refused by what the JVM runs with.

use std::fs;
use std::path::Path;

use crate::engines::{Engine, IMAGE};
use crate::lab::Lab;
use crate::runner::{Case, Outcome};
use crate::traces::assert_nothing_left;

pub const CASES: [Case; 2] = [
    ("unusual_starts_are_measured_by_podman", || {
        Engine::podman().map_or_else(Some, |engine| measured(&engine))
    }),
    ("unusual_starts_are_measured_by_docker", || {
        Engine::docker().map_or_else(Some, |engine| measured(&engine))
    }),
];

/// The test's image with a shell and the files below.
const UNUSUAL: &str = "localhost/loadline-test-starts:1";

const JAVA: &str = "/opt/jre/bin/java";

const EXECUTES: &str = "#!/bin/sh\nexec /opt/jre/bin/java -jar /app/ping.jar\n";

const WAITS: &str = "#!/bin/sh\n/opt/jre/bin/java -jar /app/ping.jar\necho gone\n";

const FORGETS: &str =
    "#!/bin/sh\nexport JAVA_TOOL_OPTIONS=-Xss512k\nexec /opt/jre/bin/java -jar /app/ping.jar\n";

/// As a memory calculator does: appended to the existing value.
const ADDS: &str = "#!/bin/sh\nexport JAVA_TOOL_OPTIONS=\"$JAVA_TOOL_OPTIONS $1\"\nexec /opt/jre/bin/java -jar /app/ping.jar\n";

fn measured(engine: &Engine) -> Outcome {
    let lab = Lab::new();
    let _image = Unusual::build(engine, lab.path()).expect("the image is built");
    let shell = |script: &'static str| vec!["/bin/sh", script];
    let adds = |option: &'static str| vec!["/bin/sh", "/app/adds.sh", option];
    let jib = vec![JAVA, "-cp", "@/app/jib-classpath-file", "Ping"];
    let form = vec!["/bin/sh", "-c", "/opt/jre/bin/java -jar /app/ping.jar"];
    let fine: [(&str, Vec<&str>, &[&str]); 6] = [
        ("a script that executes", shell("/app/executes.sh"), &[]),
        ("a script that waits", shell("/app/waits.sh"), &[]),
        ("an entry point in shell form", form, &[]),
        ("jib's layout", jib, &[]),
        ("a helper that adds", adds("-Xss512k"), &[]),
        (
            "a user without a name",
            shell("/app/executes.sh"),
            &["--user=4242"],
        ),
    ];
    for (what, command, flags) in fine {
        let lab = Lab::new();
        let ended = run(engine, &lab, flags, &command);
        println!("  {what}");
        ended.expect_code(0).says(&["PASS"]);
        let trial = lab.trial();
        let gc = &trial["evidence"]["gc"]["collector"];
        assert_eq!(gc, "Serial", "{what}: its options arrived: {trial}");
        assert_nothing_left(&lab, &[], &Default::default());
    }
    for (command, why) in [
        (shell("/app/forgets.sh"), "runs without -XX:+UseSerialGC"),
        (adds("-Xmx48m"), "runs with -Xmx48m, not with -Xmx32m"),
    ] {
        let lab = Lab::new();
        let ended = run(engine, &lab, &[], &command).expect_code(4);
        ended.says(&["INVALID other_options", why]);
        assert_nothing_left(&lab, &[], &Default::default());
    }
    None
}

fn run(engine: &Engine, lab: &Lab, flags: &[&str], command: &[&str]) -> crate::process::Ended {
    let call = engine.environment(lab.measure("run"));
    let image = ["--image", UNUSUAL, "--engine", engine.name, "--cpu=1"];
    let options = "--options=small: -XX:+UseSerialGC -Xmx32m";
    let call = call.args(&image).arg(options).args(flags).arg("--");
    call.args(command).into_end()
}

/// The image; dropping it removes it.
struct Unusual<'a>(&'a Engine);

impl<'a> Unusual<'a> {
    /// Copies only: a daemon of a test has no network in which something could run.
    fn build(engine: &'a Engine, place: &Path) -> Result<Self, String> {
        let root = place.join("root");
        fs::create_dir_all(root.join("app")).expect("a directory");
        fs::create_dir_all(root.join("bin")).expect("a directory");
        // It needs libc only, which the image has for the JVM.
        fs::copy("/bin/sh", root.join("bin/sh")).expect("a shell");
        for (name, text) in [
            ("executes.sh", EXECUTES),
            ("waits.sh", WAITS),
            ("forgets.sh", FORGETS),
            ("adds.sh", ADDS),
            ("jib-classpath-file", "/app/ping.jar"),
        ] {
            fs::write(root.join("app").join(name), text).expect("a file");
        }
        let file = place.join("Dockerfile");
        fs::write(&file, format!("FROM {IMAGE}\nCOPY root /\n")).expect("a file");
        let (file, place) = (file.display().to_string(), place.display().to_string());
        engine.say(&["build", "-q", "-t", UNUSUAL, "-f", &file, &place])?;
        Ok(Self(engine))
    }
}

impl Drop for Unusual<'_> {
    fn drop(&mut self) {
        let _ = self.0.say(&["rmi", "--force", UNUSUAL]);
    }
}
