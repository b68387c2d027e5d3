//! Engines that this machine does not let loadline use: a socket that is closed to it, a user who is
//! not root, a full disk. Said with what to do; nothing is started, stored or left.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::Command;

use rustix::mount::{MountFlags, mount};

use crate::disk::Mounted;
use crate::engines::{Engine, IMAGE};
use crate::lab::{Lab, QUICK};
use crate::process::{Call, Ended};
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 3] = [
    (
        "a_user_whose_engine_has_no_image_measures_none",
        another_user,
    ),
    ("a_socket_that_is_closed_is_said", closed_socket),
    ("a_full_disk_takes_no_image", full_disk),
];

#[track_caller]
fn refused(lab: &Lab, ended: Ended, texts: &[&str]) {
    let ended = ended.expect_code(3).says(texts);
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

/// Their engines are others than root's: what they say is what the user is told.
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
        "hint: root without all of its rights",
        "--engine podman",
    ];
    refused(&lab, ended, &texts);
    // It came from the socket's rights: nobody was let in.
    listener.set_nonblocking(true).expect("it is set");
    let asked = listener.accept().map(|(mut to, _)| to.read(&mut [0; 1]));
    assert!(asked.is_err(), "{asked:?}");
    None
}

/// A disk that is full before the image is there: said with where, and nothing of it stays.
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
    refused(&lab, ended, &texts);
    let space = rustix::fs::statvfs(&mounted.0).expect("its size");
    assert!(
        space.f_bavail * 10 > space.f_blocks * 8,
        "what was begun is gone"
    );
    None
}
