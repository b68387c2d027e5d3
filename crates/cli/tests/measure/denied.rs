//! Engines that this machine does not let loadline use, and images that it cannot start: none
//! installed, a socket that is closed to it, a user who is not root, a full disk, an image for another
//! machine or without a JVM. Said with what to do; nothing is started or left.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

use rustix::mount::{MountFlags, mount};

use crate::disk::Mounted;
use crate::engines::{Engine, IMAGE};
use crate::lab::{Lab, QUICK};
use crate::process::{Call, Ended};
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 6] = [
    (
        "a_user_whose_engine_has_no_image_measures_none",
        another_user,
    ),
    ("a_socket_that_is_closed_is_said", closed_socket),
    ("a_full_disk_takes_no_image", full_disk),
    ("a_full_disk_takes_no_container", full_for_a_container),
    (
        "a_machine_without_an_engine_is_told_which_to_install",
        no_engine,
    ),
    (
        "an_image_that_cannot_run_here_is_refused_by_what_it_is",
        foreign,
    ),
];

#[track_caller]
fn refused(lab: &Lab, ended: Ended, code: i32, texts: &[&str]) {
    let ended = ended.expect_code(code).says(texts);
    let stored = lab.state().join("loadline.db").exists();
    assert!(!stored, "something was stored. {ended}");
}

/// loadline as `setpriv` starts it, in a directory that everybody may enter.
fn with_fewer_rights(place: &tempfile::TempDir, flags: &[&str]) -> Call {
    let program = place.path().join("loadline");
    if !program.exists() {
        fs::copy(env!("CARGO_BIN_EXE_loadline"), &program).expect("a copy");
        let all = fs::Permissions::from_mode(0o755);
        fs::set_permissions(place.path(), all).expect("its rights");
    }
    let mut command = Command::new("setpriv");
    command.args(flags).arg(program).arg("run");
    command.current_dir("/").env_remove("LOADLINE_STATE");
    Call::new(command).args(&QUICK)
}

/// Their engines differ from root's: the user sees these engines' messages.
fn another_user() -> Outcome {
    let place = tempfile::tempdir().expect("a directory");
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let state = place.path().join("state");
    for engine in ["podman", "docker"] {
        if Command::new(engine).arg("--version").output().is_err() {
            continue;
        }
        let call = with_fewer_rights(&place, &user).arg("--state").arg(&state);
        let call = call.args(&["--image", IMAGE, "--engine", engine]);
        let ended = call
            .env("DOCKER_HOST", "unix:///nonexistent.sock")
            .into_end();
        assert!([Some(2), Some(3)].contains(&ended.code), "{ended}");
        ended.says(&[engine, "hint: "]);
        assert!(!state.exists(), "nothing was stored");
    }
    None
}

/// root that may not pass over the rights of files, as in a container, before another's socket.
fn closed_socket() -> Outcome {
    if Command::new("docker").arg("--version").output().is_err() {
        return Some("no docker in PATH (Debian package docker.io)".to_owned());
    }
    let lab = Lab::new();
    let place = tempfile::tempdir().expect("a directory");
    let socket = place.path().join("docker.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let nobody = Some(65534);
    std::os::unix::fs::chown(&socket, nobody, nobody).expect("another owner");
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).expect("its rights");
    let fewer = "--bounding-set=-dac_override,-dac_read_search";
    let call = with_fewer_rights(&place, &[fewer, "--inh-caps=-all"]);
    let call = call.arg("--state").arg(lab.state());
    let host = format!("unix://{}", socket.display());
    let call = call.env("DOCKER_HOST", host);
    let ended = call.args(&["--image", IMAGE, "--engine=docker"]).into_end();
    let texts = [
        "starting containers with docker",
        "permission denied",
        "hint: root without full capabilities",
        "--engine podman",
    ];
    refused(&lab, ended, 3, &texts);
    // The socket's rights caused it: no connection was accepted.
    listener.set_nonblocking(true).expect("it is set");
    let asked = listener.accept().map(|(mut to, _)| to.read(&mut [0; 1]));
    assert!(asked.is_err(), "{asked:?}");
    None
}

/// A full disk before the image is there: reported with its place, without leftovers.
fn full_disk() -> Outcome {
    let engine = match Engine::podman() {
        Ok(engine) => engine,
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    let archive = lab.path().join("image.tar").display().to_string();
    let saved = engine.say(&["save", "-q", "-o", &archive, IMAGE]);
    saved.expect("it is saved");
    let storage = lab.path().join("storage");
    fs::create_dir(&storage).expect("a directory");
    let flags = MountFlags::empty();
    mount("tmpfs", &storage, "tmpfs", flags, c"size=16m,mode=0700").expect("a mount");
    let mounted = Mounted(storage);
    let at = |name: &str| mounted.0.join(name).display().to_string();
    let text = format!(
        "[storage]\ndriver = \"overlay\"\ngraphroot = \"{}\"\nrunroot = \"{}\"\n",
        at("graph"),
        at("run")
    );
    fs::write(at("storage.conf"), text).expect("a file");
    let call = lab
        .measure("run")
        .env("CONTAINERS_STORAGE_CONF", at("storage.conf"));
    let image = format!("--image=docker-archive:{archive}");
    let ended = call.args(&[&image, "--engine=podman"]).into_end();
    let free = format!("hint: free some space in {}", at("graph"));
    let texts = [
        "it cannot be pulled",
        "no space left on device",
        &free,
        "podman image prune",
    ];
    refused(&lab, ended, 3, &texts);
    let space = rustix::fs::statvfs(&mounted.0).expect("its size");
    assert!(
        space.f_bavail * 10 > space.f_blocks * 8,
        "the partial state is gone"
    );
    None
}

/// The image is there, and what its container writes has no room.
fn full_for_a_container() -> Outcome {
    let lab = Lab::new();
    let place = tempfile::tempdir().expect("a directory");
    let storage = place.path().join("storage");
    fs::create_dir(&storage).expect("a directory");
    let flags = MountFlags::empty();
    mount("tmpfs", &storage, "tmpfs", flags, c"size=400m,mode=0700").expect("a mount");
    let mounted = Mounted(storage);
    let engine = match Engine::podman_in(&mounted.0) {
        Ok(engine) => engine,
        Err(reason) => return Some(reason),
    };
    crate::disk::fill(&mounted.0.join("filler"), 0);
    let ended = engine.call(lab.measure("run")).into_end().expect_code(3);
    let free = format!(
        "hint: free some space in {}",
        mounted.0.join("graph").display()
    );
    ended.says(&["making the container", "no space left on device", &free]);
    fs::remove_file(mounted.0.join("filler")).expect("it was there");
    assert_eq!(engine.containers(), Vec::<String>::new());
    crate::traces::assert_nothing_left(&lab, &[], &Default::default());
    None
}

/// Nothing of the name of an engine is on the path.
fn no_engine() -> Outcome {
    let lab = Lab::new();
    let place = lab.path().join("bin");
    fs::create_dir(&place).expect("a directory");
    // It starts loadline in the lab.
    symlink("/usr/bin/env", place.join("env")).expect("a link");
    let path = place.display().to_string();
    for (flags, texts) in [
        (
            &["--image=a:1"][..],
            [
                "starting an image: neither podman nor docker is on the path",
                "hint: install one: apt-get install podman",
            ],
        ),
        (
            &["--image=a:1", "--engine=docker"],
            [
                "starting an image: docker is not on the path",
                "hint: install it (apt-get install docker.io)",
            ],
        ),
    ] {
        let ended = lab.measure("run").args(flags).env("PATH", &path).into_end();
        refused(&lab, ended, 3, &texts);
    }
    None
}

/// Images of a few bytes, which are never started.
fn foreign() -> Outcome {
    if Command::new("podman").arg("--version").output().is_err() {
        return Some("no podman in PATH (Debian packages podman runc catatonit)".to_owned());
    }
    let lab = Lab::new();
    let podman = |arguments: &[&str]| {
        let ended = Command::new("podman").args(arguments).output();
        let ended = ended.expect("it starts");
        assert!(ended.status.success(), "{ended:?}");
    };
    let root = lab.path().join("root.tar");
    let mut packed = Command::new("tar");
    packed.arg("-cf").arg(&root).arg("-C/etc").arg("hostname");
    assert!(packed.status().expect("it starts").success());
    let root = root.display().to_string();
    let call = |name: &str, more: &[&str]| {
        let image = format!("--image={name}");
        lab.measure("run")
            .args(&[&image, "--engine=podman"])
            .args(more)
            .into_end()
    };
    let other = "localhost/loadline-test-s390x:1";
    podman(&[
        "import",
        "--arch=s390x",
        "--change=CMD [\"/x\"]",
        &root,
        other,
    ]);
    let ended = call(other, &[]);
    podman(&["rmi", other]);
    let texts = [
        "it is for linux/s390x, and this machine is linux/",
        "hint: build or pull it",
    ];
    refused(&lab, ended, 2, &texts);
    let plain = "localhost/loadline-test-plain:1";
    podman(&["import", "--change=CMD [\"/x\"]", &root, plain]);
    let ended = call(plain, &["--jvm=small: -Xmx64m"]);
    podman(&["rmi", plain]);
    ended.expect_code(3).says(&[
        "it has no JVM that could take -Xmx64m",
        "hint: leave the JVM options out",
    ]);
    None
}
