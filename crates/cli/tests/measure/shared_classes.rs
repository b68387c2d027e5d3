//! OpenJ9's shared class cache with a real OpenJ9: in images, in layers, and every way in which it
//! cannot be made or used.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount};

use crate::applications::ping;
use crate::disk::Mounted;
use crate::engines::{Engine, OPENJ9, OpenJ9Image};
use crate::lab::Lab;
use crate::process::{Call, Ended};
use crate::runner::{Case, Outcome};
use crate::traces::assert_nothing_left;

pub const CASES: [Case; 3] = [
    (
        "an_image_gets_a_shared_class_cache_and_a_layer_above_it",
        an_image_gets_a_shared_class_cache_and_a_layer_above_it,
    ),
    (
        "an_image_of_an_experiment_gets_a_shared_class_cache",
        an_image_of_an_experiment_gets_a_shared_class_cache,
    ),
    (
        "a_shared_class_cache_that_cannot_be_written_is_told",
        a_shared_class_cache_that_cannot_be_written_is_told,
    ),
];

/// One pair of starts of an image.
fn cache(lab: &Lab, engine: &Engine, image: &str) -> Call {
    let flags = [
        "--wait",
        "--accept-noise",
        "--runs=1",
        "--kind=scc",
        "-o",
        "out",
    ];
    let call = engine.environment(lab.call("cache").args(&flags));
    call.args(&["--warm=http://localhost:8080/", "--image", image])
        .args(&["--engine", engine.name])
}

/// The cache, its manifest and the Dockerfile that were written, the cache's name first.
fn written(lab: &Lab, of: &str) -> (PathBuf, String, String) {
    let directory = lab.path().join("out").join(of);
    let entries = fs::read_dir(&directory).expect("a directory").flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(names[2], "Dockerfile");
    let text = |name: &str| fs::read_to_string(directory.join(name)).expect("a text");
    let manifest = text(&format!("{}.manifest", names[0]));
    (directory.clone(), names[0].clone(), manifest)
}

/// What a JVM of an image says with this option.
fn said(engine: &Engine, image: &str, option: &str) -> String {
    let run = "--runtime=runc --cgroup-manager=cgroupfs run --rm --network=none --ulimit=nofile=1024:1024 --ulimit=nproc=4096:4096 --entrypoint";
    let java = format!("{OPENJ9}/bin/java");
    let arguments = [&java, image, option, "-jar", "/app/ping.jar", "--nonsense"];
    let all: Vec<&str> = run.split(' ').chain(arguments).collect();
    engine.say(&all).unwrap_or_else(|said| said)
}

fn an_image_gets_a_shared_class_cache_and_a_layer_above_it() -> Outcome {
    const CACHED: &str = "localhost/loadline-openj9-cached:1";
    let engine = match Engine::podman() {
        Ok(engine) => engine,
        Err(reason) => return Some(reason),
    };
    let _image = match OpenJ9Image::build(&engine) {
        Ok(image) => image,
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    let ended = cache(&lab, &engine, OpenJ9Image::NAME).into_end();
    let ended = ended.expect_code(0);
    assert_eq!(ended.stderr.matches("training scc").count(), 2, "{ended}");
    ended.prints(&[
        "the class path of the image",
        "Its hard limit is ",
        "podman build -t loadline-openj9:cached -f ",
        "come from it.",
    ]);
    let (directory, name, manifest) = written(&lab, "loadline-openj9.scc");
    assert!(name.ends_with("L00"), "{name}");
    assert!(manifest.contains("hard-limit "), "{manifest}");
    let directory = directory.display().to_string();
    let built = engine.say(&["build", "-q", "-t", CACHED, &directory]);
    built.expect("it builds");
    // Not nonfatal: a JVM that cannot use it ends.
    let used = "-Xshareclasses:name=loadline,cacheDir=/opt/scc,readonly,verboseIO";
    let classes = said(&engine, CACHED, used);
    assert!(
        classes.contains("Found class java/util/HashMap in shared cache"),
        "{classes}"
    );

    // Its own cache is the layer below the next one.
    let ended = cache(&lab, &engine, CACHED).into_end().expect_code(0);
    ended.prints(&[
        &format!("It is a layer above {name} of the image, usable only in /opt/scc."),
        "come from it.",
    ]);
    let (directory, above, manifest) = written(&lab, "loadline-openj9-cached.scc");
    assert!(above.ends_with("L01"), "{above}");
    for line in ["directory /opt/scc\n", &format!(" {name}\n")] {
        assert!(manifest.contains(line), "{line}{manifest}");
    }
    let directory = directory.display().to_string();
    let built = engine.say(&["build", "-q", "-t", CACHED, &directory]);
    built.expect("it builds");
    let statistics = said(
        &engine,
        CACHED,
        "-Xshareclasses:name=loadline,cacheDir=/opt/scc,printStats",
    );
    let layer = statistics
        .lines()
        .find(|line| line.starts_with("cache layer"));
    assert!(
        layer.is_some_and(|line| line.ends_with("= 1")),
        "{statistics}"
    );
    let classes = said(&engine, CACHED, used);
    assert!(
        classes.contains("Found class java/util/HashMap in shared cache"),
        "{classes}"
    );
    engine
        .say(&["rmi", "--force", CACHED])
        .expect("it is there");
    assert_nothing_left(&lab, &[], &Default::default());
    None
}

fn an_image_of_an_experiment_gets_a_shared_class_cache() -> Outcome {
    let engine = match Engine::podman() {
        Ok(engine) => engine,
        Err(reason) => return Some(reason),
    };
    let _image = match OpenJ9Image::build(&engine) {
        Ok(image) => image,
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    let experiment = format!(
        "slo = \"start<60s\"\n[app]\nimage = \"{}\"\nengine = \"podman\"\n[load]\nurl = \"http://localhost:8080/\"\nrequests = 5\nwarm-up = \"0s\"\n[run]\nrepeats = 1\naccept-noise = true\n[[factor]]\nname = \"classes\"\nlevels = [{{ label = \"without\" }}, {{ label = \"with\", cache = \"scc\", cache-requests = 3 }}]\n",
        OpenJ9Image::NAME
    );
    fs::write(lab.path().join("exp.toml"), experiment).expect("a file");
    let call = lab.call("run").args(&["--wait", "--full", "exp.toml"]);
    let ended = engine.environment(call).into_end().expect_code(0);
    assert_eq!(ended.stderr.matches("training scc").count(), 2, "{ended}");
    ended.prints(&["scc, 3 requests", "1 pair"]);
    None
}

/// The application in the lab's directory; `Err` is why it is not there.
fn with_openj9(lab: &Lab) -> Result<(), String> {
    if !Path::new(OPENJ9).join("bin/java").is_file() {
        return Err(format!("no OpenJ9 25 in {OPENJ9}"));
    }
    fs::copy(ping()?, lab.path().join("ping.jar")).expect("a copy");
    Ok(())
}

fn of_jar(lab: &Lab, flags: &[&str]) -> Ended {
    let call = lab.call("cache").args(&[
        "--wait",
        "--accept-noise",
        "--runs=1",
        "--kind=scc",
        "--jdk=openj9-25",
        "--warm=http://localhost:8080/",
    ]);
    let call = call.args(flags).args(&["--", "java", "-jar", "ping.jar"]);
    call.into_end()
}

fn a_shared_class_cache_that_cannot_be_written_is_told() -> Outcome {
    let lab = Lab::new();
    if let Err(reason) = with_openj9(&lab) {
        return Some(reason);
    }
    let small = |name: &str, size: &std::ffi::CStr, flags: MountFlags| {
        let place = lab.path().join(name);
        fs::create_dir(&place).expect("a directory");
        mount("tmpfs", &place, "tmpfs", flags, size).expect("a mount");
        Mounted(place)
    };
    let closed = small("closed", c"size=1m", MountFlags::RDONLY);
    of_jar(&lab, &["-o", "closed"]).expect_code(3).says(&[
        "cannot make",
        "closed/scc",
        "Read-only",
        "hint: the directory must be writable: -o DIR",
    ]);
    drop(closed);
    assert!(lab.results().is_empty(), "something was started");
    let full = small("full", c"size=512k", MountFlags::empty());
    of_jar(&lab, &["-o", "full"]).expect_code(3).says(&[
        "cannot write",
        "full/scc/C",
        "No space left",
        "hint: free some space",
    ]);
    let left = fs::read_dir(full.0.join("scc"))
        .expect("it was made")
        .count();
    assert_eq!(left, 0, "something half written was left");
    drop(full);
    let state = small("small", c"size=24m,mode=700", MountFlags::empty());
    // OpenJ9 checks the space for the whole cache before it begins.
    let ended = of_jar(&lab, &["--state", &state.0.display().to_string()]);
    ended.expect_code(4).says(&[
        "no scc cache: its disk has less space",
        "JVMSHRC561E",
        "hint: free some space on the disk of the state directory",
    ]);
    let made = fs::read_dir(lab.path().join("scc")).map_or(0, Iterator::count);
    assert_eq!(made, 0, "something was made");
    None
}
