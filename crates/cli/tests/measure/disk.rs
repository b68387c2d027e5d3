//! State directories that cannot be written: read-only, full, no directory at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount, unmount};

use crate::engines::Engine;
use crate::lab::Lab;
use crate::process::Ended;
use crate::runner::{Case, Outcome};
use crate::traces::{networks, processes};

pub const CASES: [Case; 7] = [
    ("no_state_directory", no_state_directory),
    ("a_read_only_state_directory", a_read_only_state_directory),
    ("a_full_disk", a_full_disk),
    (
        "an_application_that_fills_the_disk_is_ended",
        fills_the_disk,
    ),
    (
        "an_image_that_fills_its_engines_disk_is_ended",
        fills_its_engines_disk,
    ),
    (
        "a_disk_that_others_fill_is_not_its_fault",
        others_fill_the_disk,
    ),
    (
        "a_disk_that_others_fill_and_free_is_not_its_fault",
        others_fill_and_free_the_disk,
    ),
];

/// A mount that goes away with the test, however it ends.
pub struct Mounted(pub PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        // A failing test has said more than this could.
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

fn no_state_directory() -> Outcome {
    let lab = Lab::new();
    let refused = |directory: &str, ended: Ended| {
        let texts = ["cannot use the state directory", directory, "hint: "];
        ended.expect_code(3).says(&texts);
    };
    let look = |directory: &str| lab.bare(&["list", "--state", directory]).into_end();
    for directory in ["/proc/loadline", "/dev/null/loadline"] {
        let call = lab
            .bare(&["run", "--wait", "--state", directory])
            .args(&["--slo=p99<1s", "--rate=1/s", "--url=http://localhost/"])
            .zoo(&lab, &["serve"]);
        refused(directory, call.into_end());
    }
    // What only looks makes none, and says that there is nothing; where none could be, it says that.
    let looked = look("/proc/loadline").expect_code(0);
    looked.says(&["no results in", "/proc/loadline"]);
    refused("/dev/null/loadline", look("/dev/null/loadline"));
    None
}

fn a_read_only_state_directory() -> Outcome {
    let lab = Lab::new();
    let state = lab.state();
    let call = lab.measure("run").zoo(&lab, &["serve"]);
    call.into_end().expect_code(0);
    let before = lab.result("last");
    mount_bind(&state, &state).expect("a mount");
    let _mounted = Mounted(state.clone());
    mount_remount(&state, MountFlags::BIND | MountFlags::RDONLY, "").expect("it becomes read-only");
    let call = lab.measure("run").zoo(&lab, &["serve"]);
    let texts = ["cannot use the state directory", "Read-only", "hint: "];
    call.into_end().expect_code(3).says(&texts);
    // The store can still be read.
    assert_eq!(lab.result("last"), before);
    lab.call("list").into_end().expect_code(0).prints(&["done"]);
    let export = lab.call("export").arg("--format=csv").into_end();
    assert_eq!(export.expect_code(0).stdout.lines().count(), 2);
    None
}

fn a_full_disk() -> Outcome {
    let lab = Lab::new();
    let state = lab.state();
    fs::create_dir(&state).expect("a directory");
    mount(
        "tmpfs",
        &state,
        "tmpfs",
        MountFlags::empty(),
        c"size=2m,mode=0700",
    )
    .expect("a mount");
    let mounted = Mounted(state.clone());
    // More trials than fit: each keeps its record, its samples and its output.
    let call = lab.measure("run").zoo(&lab, &["serve"]);
    call.into_end().expect_code(0);
    let first = lab.result("last");
    fill(&state.join("filler"), 64 << 10);
    let call = lab.size();
    let ended = call.into_end().expect_code(3);
    let ended = ended.says(&["error: ", "disk", "full", "hint: free some space"]);
    assert!(
        ended.stderr.contains(&state.display().to_string()),
        "{ended}"
    );
    assert_eq!(processes(&lab), Vec::<PathBuf>::new());
    // Earlier results can be read, on the full disk too.
    let id = first["result"].as_str().expect("an id");
    assert_eq!(lab.result(id)["trials"], first["trials"]);
    fs::remove_file(state.join("filler")).expect("it is there");
    lab.call("show")
        .arg(id)
        .into_end()
        .expect_code(0)
        .prints(&["1 of 1"]);
    drop(mounted);
    None
}

/// A disk of 64 MiB for the state of a lab, with a reserve of 3.2 MiB for the machine.
fn small_disk(lab: &Lab) -> Mounted {
    let state = lab.state();
    fs::create_dir(&state).expect("a directory");
    let flags = MountFlags::empty();
    mount("tmpfs", &state, "tmpfs", flags, c"size=64m,mode=0700").expect("a mount");
    Mounted(state)
}

fn fills_the_disk() -> Outcome {
    let lab = Lab::new();
    let mounted = small_disk(&lab);
    let call = lab.measure("run").zoo(&lab, &["fill-disk", "mib=4000"]);
    // How far it came meanwhile depends on how fast it writes.
    let texts = [
        "APP_KO disk",
        "it filled the disk: its files took 6",
        "it was ended",
    ];
    call.into_end().says(&texts);
    assert_eq!(processes(&lab), Vec::<PathBuf>::new());
    let left = rustix::fs::statvfs(&mounted.0).expect("its size");
    assert!(left.f_bavail * 10 > left.f_blocks * 9, "its files are gone");
    // What fits does no harm.
    let call = lab.measure("run").zoo(&lab, &["fill-disk", "mib=40"]);
    call.into_end().expect_code(0);
    drop(mounted);
    None
}

/// What an image writes outside of /tmp lies on the disk of its engine.
fn fills_its_engines_disk() -> Outcome {
    let lab = Lab::new();
    let storage = lab.path().join("storage");
    fs::create_dir(&storage).expect("a directory");
    let flags = MountFlags::empty();
    mount("tmpfs", &storage, "tmpfs", flags, c"size=400m,mode=0700").expect("a mount");
    let mounted = Mounted(storage);
    let engine = match Engine::podman_in(&mounted.0) {
        Ok(engine) => engine,
        Err(reason) => return Some(reason),
    };
    let free = || rustix::fs::statvfs(&mounted.0).expect("its size").f_bavail;
    let before = free();
    let zoo = [
        "/bin/measure",
        "zoo",
        "fill-disk",
        "mib=4000",
        "file=/filler",
    ];
    let call = engine.call(lab.measure("run")).arg("--").args(&zoo);
    let texts = [
        "APP_KO disk",
        "it filled the disk: its files took ",
        "it was ended",
    ];
    call.into_end().says(&texts);
    // The kernel frees what an unmounted layer held a moment later, on a busy machine many.
    let begin = Instant::now();
    while free() * 20 <= before * 19 {
        let left = before.saturating_sub(free());
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{left} of {before} blocks are kept, by {:?}",
            engine.containers()
        );
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(engine.containers(), Vec::<String>::new());
    None
}

fn others_fill_the_disk() -> Outcome {
    beside_others(false)
}

/// Space that is free again after the trial was freed by others, who had used it.
fn others_fill_and_free_the_disk() -> Outcome {
    beside_others(true)
}

fn beside_others(do_free: bool) -> Outcome {
    let lab = Lab::new();
    let mounted = small_disk(&lab);
    let file = mounted.0.join("filler");
    let call =
        lab.call("run")
            .args(&["--wait", "--slo=errors<50%", "--rate=20/s", "--measure=20s"]);
    let call = call.args(&["--warm-up=0s", "--url=http://localhost:8080/"]);
    let mut running = call.zoo(&lab, &["serve"]).start();
    let files = mounted.0.join("trials");
    let has_begun = || fs::read_dir(&files).is_ok_and(|mut trials| trials.next().is_some());
    while !has_begun() && !running.has_ended() {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(2));
    let applications = networks(&lab);
    assert!(!applications.is_empty(), "it serves");
    fill(&file, 1 << 20);
    while do_free
        && networks(&lab)
            .keys()
            .any(|network| applications.contains_key(network))
        && !running.has_ended()
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    if do_free {
        fs::remove_file(&file).expect("it is there");
    }
    let ended = running.end().expect_code(3);
    ended.says(&["other programs filled the disk of", "hint: free some space"]);
    assert_eq!(processes(&lab), Vec::<PathBuf>::new());
    drop(mounted);
    None
}

/// Writes a file until this many bytes are left.
pub fn fill(file: &Path, left: u64) {
    let free = rustix::fs::statvfs(file.parent().expect("a directory")).expect("its size");
    let size = (free.f_bavail * free.f_frsize).saturating_sub(left);
    fs::write(file, vec![0; usize::try_from(size).expect("small")]).expect("it fits");
}
