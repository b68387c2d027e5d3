//! Objects of the kernel, as many as there may be, and memory that no process seems to hold.

use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Command;

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fs::{MemfdFlags, inotify, memfd_create};
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};

use crate::{Settings, processes, say, server};

/// Descriptors that are given back, so that it can serve.
const SPARE: usize = 100;

/// Opens objects of the kind `what` until it cannot, at most `count`.
pub(crate) fn hold(settings: &Settings) -> u8 {
    let what = settings.text("what", "files");
    let mut held: Vec<OwnedFd> = Vec::new();
    for number in 0..settings.number("count", 1 << 20) {
        match one(&what, number) {
            Some(object) => held.push(object),
            None => break,
        }
    }
    say(&format!("{} {what}\n", held.len()));
    held.truncate(held.len().saturating_sub(SPARE));
    server::serve(settings)
}

fn one(what: &str, number: u64) -> Option<OwnedFd> {
    match what {
        "files" => File::open("/dev/null").ok().map(OwnedFd::from),
        "epoll" => epoll::create(epoll::CreateFlags::CLOEXEC).ok(),
        "events" => eventfd(1, EventfdFlags::CLOEXEC).ok(),
        "inotify" => watch(),
        "pipes" => rustix::pipe::pipe().ok().map(|(read, _)| read),
        "timers" => timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).ok(),
        "ports" => TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .ok()
            .map(OwnedFd::from),
        "abstract" => {
            let name = SocketAddr::from_abstract_name(format!("loadline-zoo-{number}")).ok()?;
            UnixListener::bind_addr(&name).ok().map(OwnedFd::from)
        }
        _ => None,
    }
}

/// Watches what everybody changes.
fn watch() -> Option<OwnedFd> {
    let watcher = inotify::init(inotify::CreateFlags::CLOEXEC).ok()?;
    for directory in ["/", "/tmp", "/proc", "/dev"] {
        let _ = inotify::add_watch(&watcher, directory, inotify::WatchFlags::ALL_EVENTS);
    }
    Some(watcher)
}

/// Memory in files of no directory, which a daemon keeps open.
pub(crate) fn memory_files(settings: &Settings) -> u8 {
    let block = vec![7u8; 1 << 20];
    let mut held = Vec::new();
    for _ in 0..settings.number("mib", 16) {
        if let Ok(file) = memfd_create("loadline-zoo", MemfdFlags::empty()) {
            let mut file = File::from(file);
            let _ = file.write_all(&block);
            held.push(file);
        }
    }
    // It inherits them: they are not closed when a program is executed.
    let _keeper = processes::own(&["daemon"]).spawn();
    server::serve(settings)
}

/// Memory in files of /dev/shm, which nobody removes.
pub(crate) fn shared_memory(settings: &Settings) -> u8 {
    let block = vec![7u8; 1 << 20];
    for number in 0..settings.number("mib", 16) {
        let _ = std::fs::write(format!("/dev/shm/loadline-zoo-{number}"), &block);
    }
    server::serve(settings)
}

/// System V's objects: they live until somebody removes them. Made by ipcmk of util-linux.
pub(crate) fn system_v(settings: &Settings) -> u8 {
    let mut made = 0;
    for _ in 0..settings.number("count", 5) {
        for what in [["-M", "1048576"], ["-S", "8"], ["-Q", ""]] {
            let what = what.iter().filter(|word| !word.is_empty());
            let status = Command::new("ipcmk").args(what).status();
            made += u32::from(status.is_ok_and(|status| status.success()));
        }
    }
    say(&format!("{made} objects of System V\n"));
    match made {
        0 => 1,
        _ => server::serve(settings),
    }
}

/// Much more memory than there is, none of it written.
pub(crate) fn reserve(settings: &Settings) -> u8 {
    let mut held: Vec<Vec<u8>> = Vec::new();
    for _ in 0..settings.number("count", 512) {
        let mut block = Vec::new();
        if block.try_reserve_exact(8 << 30).is_ok() {
            held.push(block);
        }
    }
    say(&format!("{} x 8 GiB reserved\n", held.len()));
    std::hint::black_box(&held);
    server::serve(settings)
}
