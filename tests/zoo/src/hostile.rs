//! Output, descriptors, threads, disk, and ends of all kinds.

use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::{Signal, getpid, kill_process};

use crate::{Settings, say, server};

pub(crate) fn sleep() -> u8 {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

pub(crate) fn flood(settings: &Settings) -> u8 {
    let block = b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n".repeat(1024);
    let mut output = std::io::stdout();
    for _ in 0..settings.number("mib", 1024) * 16 {
        if output.write_all(&block).is_err() {
            break;
        }
    }
    server::serve(settings)
}

pub(crate) fn binary(settings: &Settings) -> u8 {
    let all: Vec<u8> = (0..=255).collect();
    let _ = std::io::stdout().write_all(&all.repeat(64));
    say("\u{1b}[2J\u{1b}]0;owned\u{7}\u{1b}[31mred\u{1b}[0m\n");
    server::serve(settings)
}

pub(crate) fn no_newline(settings: &Settings) -> u8 {
    let block = vec![b'x'; 1 << 20];
    for _ in 0..10 {
        let _ = std::io::stdout().write_all(&block);
    }
    server::serve(settings)
}

pub(crate) fn exit(settings: &Settings) -> u8 {
    let code = u8::try_from(settings.number("code", 0)).unwrap_or(0);
    let after = settings.millis("after_ms");
    if after.is_zero() {
        return code;
    }
    let (port, status) = (
        settings.number("port", 8080),
        settings.number("status", 200),
    );
    std::thread::spawn(move || {
        let arguments = [format!("port={port}"), format!("status={status}")];
        server::serve(&Settings::new(arguments.into_iter()))
    });
    std::thread::sleep(after);
    code
}

pub(crate) fn signal(settings: &Settings) -> u8 {
    std::thread::sleep(settings.millis("after_ms"));
    let number = i32::try_from(settings.number("number", 11)).unwrap_or(11);
    // Twice: Rust's own handler of SIGSEGV takes the first and sets the default back.
    raise(number);
    raise(number);
    1
}

fn raise(number: i32) {
    if let Some(signal) = Signal::from_named_raw(number) {
        let _ = kill_process(getpid(), signal);
    }
}

pub(crate) fn stop_self(settings: &Settings) -> u8 {
    let after = settings.millis("after_ms");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(after);
            raise(Signal::STOP.as_raw());
        });
        server::serve(settings)
    })
}

pub(crate) fn descriptors(settings: &Settings) -> u8 {
    let mut held = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        held.push(file);
    }
    say(&format!("{} descriptors\n", held.len()));
    held.truncate(held.len().saturating_sub(100));
    server::serve(settings)
}

pub(crate) fn threads(settings: &Settings) -> u8 {
    let mut count = 0u32;
    let small = || std::thread::Builder::new().stack_size(16 << 10);
    while count < 100_000 && small().spawn(sleep).is_ok() {
        count += 1;
    }
    say(&format!("{count} threads\n"));
    server::serve(settings)
}

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

pub(crate) fn plant(settings: &Settings) -> u8 {
    let path = settings.text("path", "/tmp/gc.log");
    if let Some(directory) = Path::new(&path).parent() {
        let _ = std::fs::create_dir_all(directory);
    }
    let _ = match settings.text("target", "/etc/shadow").as_str() {
        "fifo" => mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .map_err(std::io::Error::from),
        "sparse" => File::create(path).and_then(|file| file.set_len(1 << 40)),
        target => std::os::unix::fs::symlink(target, path),
    };
    server::serve(settings)
}

pub(crate) fn hang(settings: &Settings) -> u8 {
    let port = u16::try_from(settings.number("port", 8080)).unwrap_or(8080);
    let Ok(listener) = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)) else {
        return 98;
    };
    let held: Vec<_> = listener.incoming().flatten().collect();
    drop(held);
    0
}

/// Named apart from [`crate::say`], which it uses.
pub(crate) fn say_then_sleep(settings: &Settings) -> u8 {
    std::thread::sleep(settings.millis("after_ms"));
    say(&format!("{}\n", settings.text("text", "ready")));
    sleep()
}
