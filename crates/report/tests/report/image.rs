//! The Dockerfile built and started by a real engine, from files that are on this machine.
//!
//! SKIP by name without podman, a JDK, a built workload, or working containers. Nothing is fetched:
//! the base image is empty, and this machine's own system directories are mounted into the
//! container.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use loadline_analysis::record::StartCache;
use loadline_report::emit::{
    BaseImage, EmitPurpose, ProductionApplication, ReadinessCheck, StartCommand as Measured, emit,
};
use loadline_sizing::cache::CacheKind;

use crate::artefacts::application;
use crate::fixture;

/// Settings with which podman runs as a plain root without systemd and without CAP_SYS_RESOURCE.
const CONTAINERS: &str = "\
[containers]
default_ulimits = [\"nofile=1024:1024\", \"nproc=4096:4096\"]
[engine]
cgroup_manager = \"cgroupfs\"
events_logger = \"file\"
";

/// What java needs of this machine.
const MOUNTED: [&str; 5] = [
    "/usr/lib",
    "/usr/bin",
    "/etc/alternatives",
    "/lib64",
    "/etc/java-17-openjdk",
];

struct Engine {
    place: tempfile::TempDir,
}

impl Engine {
    fn podman(&self, arguments: &[&str]) -> Output {
        let root = self.place.path();
        Command::new("podman")
            .args(["--storage-driver=vfs", "--root"])
            .arg(root.join("storage"))
            .arg("--runroot")
            .arg(root.join("run"))
            .args(arguments)
            .env("CONTAINERS_CONF", root.join("containers.conf"))
            .output()
            .expect("podman starts")
    }

    /// As [`Engine::podman`]; what it printed, or how it failed.
    fn say(&self, arguments: &[&str]) -> Result<String, String> {
        let output = self.podman(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(format!(
                "podman {}: {}",
                arguments.join(" "),
                text(&output.stderr)
            ))
        }
    }
}

impl Engine {
    /// Waits for the first line of the container; false when it ended or never came to it.
    fn serves(&self) -> bool {
        // Each look takes podman a tenth of a second and more: some minutes in all.
        (0..1000).any(|_| {
            let running = self.say(&["inspect", "-f", "{{.State.Running}}", "ping"]);
            running.as_deref() == Ok("false") || !self.podman(&["logs", "ping"]).stdout.is_empty()
        }) && !self.podman(&["logs", "ping"]).stdout.is_empty()
    }

    /// A new directory with the files of an application and its jar, to build in.
    fn context(&self, name: &str, application: &ProductionApplication) -> PathBuf {
        let context = self.place.path().join(name);
        std::fs::create_dir(&context).expect("writable");
        let artefacts = emit(&fixture::search(), application, &[EmitPurpose::Docker]);
        for artefact in artefacts.expect("a recommendation") {
            std::fs::write(context.join(artefact.name), artefact.text).expect("writable");
        }
        std::fs::copy(ping(), context.join("ping.jar")).expect("writable");
        context
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Also after a failed assertion nothing may run on. What cannot be removed is not there.
        self.podman(&["rm", "-f", "-a"]);
    }
}

fn ping() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/workloads/ping.jar")
}

/// An engine that can build and run, with its base image; or why there is none.
fn engine() -> Result<Engine, String> {
    if Command::new("podman").arg("--version").output().is_err() {
        return Err("no podman in PATH (Debian packages podman, runc)".to_owned());
    }
    if !Path::new("/usr/bin/java").exists() {
        return Err("no java in /usr/bin".to_owned());
    }
    if !ping().is_file() {
        return Err("build/workloads/ping.jar is not built (make workloads)".to_owned());
    }
    let engine = Engine {
        place: tempfile::tempdir().expect("a temporary directory"),
    };
    let root = engine.place.path();
    std::fs::write(root.join("containers.conf"), CONTAINERS).expect("writable");
    let base = root.join("base");
    for folder in ["usr/local/bin", "tmp"] {
        std::fs::create_dir_all(base.join(folder)).expect("writable");
    }
    std::os::unix::fs::symlink("usr/lib", base.join("lib")).expect("a new link");
    let tar = root.join("base.tar");
    let packed = Command::new("tar")
        .arg("-C")
        .arg(&base)
        .arg("-cf")
        .arg(&tar)
        .arg(".")
        .status();
    assert!(packed.expect("tar starts").success());
    let tar = tar.display().to_string();
    engine.say(&["import", &tar, "localhost/loadline-base:1"])?;
    // Whether containers run here at all, before anything of ours is in one.
    let usr = "/usr:/usr:ro";
    let lib64 = "/lib64:/lib64:ro";
    let run = [
        "run",
        "--rm",
        "--runtime=runc",
        "--network=none",
        "-v",
        usr,
        "-v",
        lib64,
    ];
    engine.say(&[&run[..], &["localhost/loadline-base:1", "/usr/bin/true"]].concat())?;
    Ok(engine)
}

/// Parts of this machine that java needs, as engine options.
fn mounts() -> Vec<String> {
    let there = MOUNTED.iter().filter(|path| Path::new(path).exists());
    there
        .flat_map(|path| ["-v".to_owned(), format!("{path}:{path}:ro")])
        .collect()
}

/// The launcher, if it was built next to this test.
fn launcher() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let path = test.parent()?.parent()?.join("loadline-launch");
    path.is_file().then_some(path)
}

#[test]
fn the_image_builds_starts_as_nobody_and_stops_when_told() {
    let engine = match engine() {
        Ok(engine) => engine,
        Err(why) => {
            println!("SKIP image::the_image_builds_and_starts: {why}");
            return;
        }
    };
    let words = ["java", "-jar", "ping.jar", "--port=8080"].map(str::to_owned);
    let launcher = launcher();
    // A library of the name that the jar has in other images: it must not be started instead.
    let mut command = Measured::read(&words).expect("it has a jar");
    command.beside = vec!["app.jar".to_owned()];
    let application = ProductionApplication {
        command,
        measured_image: None,
        base_image: BaseImage::from_user("localhost/loadline-base:1", "", "17"),
        ready: Some(ReadinessCheck::Tcp { port: 8080 }),
        launcher: launcher.is_some(),
        cache: None,
        ..application()
    };
    let context = engine.context("context", &application);
    std::fs::write(context.join("app.jar"), "no jar").expect("writable");
    if let Some(launcher) = launcher {
        std::fs::copy(launcher, context.join("loadline-launch")).expect("writable");
    }
    let context = context.display().to_string();
    engine
        .say(&["build", "-t", "localhost/ping:1", &context])
        .expect("it builds");

    let mounts = mounts();
    let mut run: Vec<&str> = "run -d --name ping --runtime=runc --network=none --read-only --memory=212m --cpus=1 --cap-drop=ALL -v /tmp"
        .split(' ')
        .collect();
    run.extend(mounts.iter().map(String::as_str));
    run.push("localhost/ping:1");
    engine.say(&run).expect("it starts");
    let user = engine.say(&["inspect", "-f", "{{.Config.User}}", "ping"]);
    assert_eq!(user.as_deref(), Ok("64999:64999"));
    // It said that it serves: the JVM took its options, found the jar and installed its handlers.
    assert!(engine.serves(), "{:?}", engine.say(&["logs", "ping"]));
    let stopped = engine.say(&["stop", "-t", "20", "ping"]);
    let code = engine.say(&["inspect", "-f", "{{.State.ExitCode}}", "ping"]);
    // 143: the JVM ended by SIGTERM; 137 would be the kill after the grace time.
    assert_eq!(code.as_deref(), Ok("143"), "{stopped:?}");
    engine.say(&["rm", "-f", "ping"]).expect("it goes");
}

/// An OpenJ9 on this machine, as containers see it too.
const OPENJ9: &str = "/usr/lib/jvm/openj9-25";

/// podman with what java needs of this machine, for images on an OpenJ9.
struct OnOpenJ9 {
    engine: Engine,
    mounts: Vec<String>,
}

impl OnOpenJ9 {
    const BASE: &str = "localhost/loadline-openj9:1";

    /// With its base image; or why there is none.
    fn new() -> Result<Self, String> {
        if !Path::new(OPENJ9).join("bin/java").is_file() {
            return Err(format!("no {OPENJ9}"));
        }
        let engine = engine()?;
        let tar = engine.place.path().join("base.tar").display().to_string();
        let path = format!("--change=ENV PATH={OPENJ9}/bin:/usr/local/bin:/usr/bin");
        engine.say(&["import", &path, &tar, Self::BASE])?;
        let mounts = mounts();
        Ok(Self { engine, mounts })
    }

    /// podman with these words, the mounts between them.
    fn say(&self, before: &str, after: &[&str]) -> Result<String, String> {
        let mounts = self.mounts.iter().map(String::as_str);
        let all: Vec<&str> = before.split(' ').chain(mounts).collect();
        self.engine.say(&[&all, after].concat())
    }

    /// Builds the emitted files for a base image; its cache is filled on the way.
    fn build(&self, base: &str, image: &str) {
        let words = ["java", "-jar", "ping.jar", "--port=8080"].map(str::to_owned);
        let cache = StartCache {
            kind: CacheKind::Scc,
            requests: 20,
        };
        let application = ProductionApplication {
            command: Measured::read(&words).expect("it has a jar"),
            measured_image: None,
            base_image: BaseImage::from_user(base, "", "25"),
            ready: Some(ReadinessCheck::Tcp { port: 8080 }),
            jdk: 25,
            launcher: false,
            cache: Some(cache),
            ..application()
        };
        let name = image.replace(['/', ':'], "-");
        let context = self.engine.context(&name, &application);
        let context = context.display().to_string();
        let build = format!("build --runtime=runc --network=none -t {image}");
        let built = self.say(&build, &[&context]).expect("it builds");
        assert!(built.contains("the cache holds "), "{built}");
    }

    /// The file of the cache that an image's process maps, read-only.
    fn mapped(&self, image: &str) -> Vec<String> {
        let run = "run -d --name ping --runtime=runc --network=none --read-only --memory=212m --cpus=1 --cap-drop=ALL -v /tmp";
        self.say(run, &[image]).expect("it starts");
        let engine = &self.engine;
        assert!(engine.serves(), "{:?}", engine.say(&["logs", "ping"]));
        let pid = engine.say(&["inspect", "-f", "{{.State.Pid}}", "ping"]);
        let maps = format!("/proc/{}/maps", pid.expect("it runs"));
        let maps = std::fs::read_to_string(maps).expect("it runs");
        engine.say(&["rm", "-f", "ping"]).expect("it goes");
        let mapped = maps.lines().filter(|line| line.contains("_loadline_G"));
        let mut files: Vec<String> = mapped
            .map(|line| {
                assert!(line.contains(" r--"), "not read-only: {line}");
                let (_, layer) = line.rsplit_once('L').expect("it ends in its layer");
                format!("L{layer}")
            })
            .collect();
        files.dedup();
        files
    }

    /// What a JVM of an image says with this option; it starts no application.
    fn said(&self, image: &str, option: &str) -> String {
        let run = "run --rm --runtime=runc --network=none --read-only -v /tmp";
        let option = format!("-Xshareclasses:name=loadline,cacheDir=/opt/scc,{option}");
        let java = ["--entrypoint=java", image, &option];
        let ping = ["-jar", "/app/app.jar", "--nonsense"];
        let said = self.say(run, &[&java[..], &ping].concat());
        said.unwrap_or_else(|said| said)
    }
}

#[test]
fn the_image_fills_its_shared_class_cache_and_starts_with_it() {
    const FOUND: &str = "Found class java/util/HashMap in shared cache";
    const IMAGE: &str = "localhost/ping:1";
    const HAS_ONE: &str = "localhost/loadline-openj9-with-scc:1";
    const ABOVE: &str = "localhost/ping-above:1";
    let openj9 = match OnOpenJ9::new() {
        Ok(openj9) => openj9,
        Err(why) => {
            println!(
                "SKIP image::the_image_fills_its_shared_class_cache_and_starts_with_it: {why}"
            );
            return;
        }
    };
    openj9.build(OnOpenJ9::BASE, IMAGE);
    assert_eq!(openj9.mapped(IMAGE), ["L00"]);
    // Not nonfatal: an OpenJ9 that cannot use it ends.
    let said = openj9.said(IMAGE, "readonly,verboseIO");
    assert!(said.contains(FOUND), "{said}");

    // A base image that has a cache in /opt/scc already gets a layer above it.
    let bare = openj9.engine.place.path().join("bare");
    std::fs::create_dir(&bare).expect("writable");
    let text = format!("FROM {IMAGE}\nUSER 0:0\nENTRYPOINT []\n");
    std::fs::write(bare.join("Dockerfile"), text).expect("writable");
    let bare = bare.display().to_string();
    let built = openj9.engine.say(&["build", "-t", HAS_ONE, &bare]);
    built.expect("it builds");
    openj9.build(HAS_ONE, ABOVE);
    assert_eq!(openj9.mapped(ABOVE), ["L00", "L01"]);
    let said = openj9.said(ABOVE, "printStats");
    let layer = said.lines().find(|line| line.starts_with("cache layer"));
    assert!(layer.is_some_and(|line| line.ends_with("= 1")), "{said}");
    let said = openj9.said(ABOVE, "readonly,verboseIO");
    assert!(said.contains(FOUND), "{said}");
}
