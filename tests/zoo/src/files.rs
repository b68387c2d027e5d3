//! Files: too many, too large, too deep, oddly named, locked, and where something else is expected.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, FileType, FlockOperation, Mode, OFlags, flock, mknodat};

use crate::{Settings, server};

pub(crate) fn fill_disk(settings: &Settings) -> u8 {
    let block = vec![7u8; 1 << 20];
    let file = settings.text("file", "/tmp/filler");
    if let Ok(mut file) = File::create(file) {
        for _ in 0..settings.number("mib", 64) {
            let _ = file.write_all(&block);
        }
    }
    for directory in ["/var/tmp", "/dev/shm", "/run/lock"] {
        let _ = std::fs::write(format!("{directory}/loadline-zoo"), "x");
    }
    server::serve(settings)
}

/// A tree deeper than any path may be long, with a link out of it in each level.
pub(crate) fn deep_tree(settings: &Settings) -> u8 {
    let made = rustix::fs::open("/tmp", OFlags::DIRECTORY, Mode::empty());
    let mut made = made.ok();
    let length = usize::try_from(settings.number("name", 1)).unwrap_or(1);
    let name = "d".repeat(length);
    let target = settings.text("target", "/etc");
    for _ in 0..settings.number("levels", 2000) {
        made = made.and_then(|here| {
            rustix::fs::symlinkat(&target, &here, "link").ok()?;
            rustix::fs::mkdirat(&here, &name, Mode::RWXU).ok()?;
            rustix::fs::openat(&here, &name, OFlags::DIRECTORY, Mode::empty()).ok()
        });
    }
    if made.is_none() {
        return 1;
    }
    server::serve(settings)
}

/// Something where another program looks for a file of its own.
pub(crate) fn plant(settings: &Settings) -> u8 {
    let path = settings.text("path", "/tmp/gc.log");
    if let Some(directory) = Path::new(&path).parent() {
        let _ = fs::create_dir_all(directory);
    }
    let _ = match settings.text("target", "/etc/shadow").as_str() {
        "fifo" => mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .map_err(std::io::Error::from),
        "sparse" => File::create(path).and_then(|file| file.set_len(1 << 40)),
        "directory" => fs::create_dir(path),
        "socket" => UnixListener::bind(path).map(std::mem::forget),
        "closed" => File::create(&path).and_then(|_| fs::set_permissions(path, none())),
        "growing" => grow(path),
        "gc-log" => fs::write(path, GC_LOG),
        "counters" => fs::write(path, COUNTERS),
        target => symlink(target, path),
    };
    server::serve(settings)
}

/// Lines of a GC log with times that no JVM can have had.
const GC_LOG: &str = "[0.001s][1000000ns][info][gc] Using Serial\n\
    [0.002s][2000000ns][info][gc] GC(0) Pause Full (System.gc()) 9999999999M->0M(1M) 99999999999999.999ms\n\
    [-5.000s][18446744073709551615ns][info][gc] GC(1) Pause Young (Allocation Failure) 1M->9M(2M) -7.000ms\n\
    [9e99s][99999999999999999999ns][info][gc] GC(18446744073709551615) Pause Full 1M->1M(1M) 1.000ms\n";

/// The head of HotSpot's counters, whose entries lie outside of the file.
const COUNTERS: [u8; 32] = [
    0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    32, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f,
];

/// A file that is longer each time somebody looks.
fn grow(path: String) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    std::thread::spawn(move || {
        let line =
            b"[1.5s][1500000000ns][info][gc] GC(1) Pause Young 1M->1M(2M) 0.1ms\n".repeat(100);
        while file.write_all(&line).is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    Ok(())
}

/// No right for anybody.
fn none() -> Permissions {
    Permissions::from_mode(0o0)
}

/// A tree that nobody may enter or read, with files in it.
pub(crate) fn closed_tree(settings: &Settings) -> u8 {
    for number in 0..settings.number("count", 50) {
        let outer = format!("/tmp/closed-{number}");
        let inner = format!("{outer}/inner");
        let _ = fs::create_dir_all(&inner);
        let _ = fs::write(format!("{inner}/file"), "x");
        let _ = fs::set_permissions(format!("{inner}/file"), none());
        let _ = fs::set_permissions(inner, none());
        let _ = fs::set_permissions(outer, none());
    }
    server::serve(settings)
}

/// Names that are no text, hold newlines and escape sequences, look like options or are as long as
/// one may be.
pub(crate) fn odd_names(settings: &Settings) -> u8 {
    let longest = [b'n'; 255];
    let odd: [&[u8]; 8] = [
        b"two\nlines",
        b"\xff\xfe\x80",
        b"\x1b[2Jcleared",
        b"-rf",
        b"*",
        b" ",
        b"...",
        &longest,
    ];
    for name in odd {
        let path = Path::new("/tmp").join(OsStr::from_bytes(name));
        let _ = fs::create_dir(&path);
        let _ = fs::write(path.join(OsStr::from_bytes(name)), "x");
    }
    server::serve(settings)
}

/// So many files in one directory.
pub(crate) fn many_files(settings: &Settings) -> u8 {
    for number in 0..settings.number("count", 5000) {
        let _ = File::create(format!("/tmp/file-{number}"));
    }
    server::serve(settings)
}

/// Holds a lock on all that it can open and that somebody else may want.
pub(crate) fn lock(settings: &Settings) -> u8 {
    let own = std::env::current_exe().unwrap_or_default();
    let wanted = [
        Path::new("/tmp"),
        Path::new("/tmp/gc.log"),
        Path::new("/etc/passwd"),
        Path::new("/proc/self/cgroup"),
        Path::new("/run/lock/loadline.lock"),
        Path::new("/sys/fs/cgroup"),
        &own,
    ];
    let _ = File::create("/tmp/gc.log");
    let opened = wanted.iter().filter_map(|path| File::open(path).ok());
    let held: Vec<File> = opened
        .filter(|file| flock(file, FlockOperation::NonBlockingLockExclusive).is_ok())
        .collect();
    crate::say(&format!("{} locks\n", held.len()));
    server::serve(settings)
}
