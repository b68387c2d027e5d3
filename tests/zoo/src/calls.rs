//! System calls that no safe function makes: what an application must not get, and processes that
//! hold each other.
//!
//! perl makes the calls: it is on every Debian and Ubuntu (perl-base), and this crate has no unsafe
//! code. Nothing of it is tried as root: it would work.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use libc::c_long;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::{Settings, report, say, server};

/// Ends with 0 where the kernel refuses the call for want of rights (EPERM, EACCES) or does not offer
/// it (ENOSYS): any other error is one of the arguments, and shows nothing. An argument after `@` is
/// text, with room for an answer behind it; the others are numbers.
const CALL: &str = r#"my @words = map { /^@(.*)/s ? $1 . "\0" x 256 : $_ + 0 } @ARGV;
my $answer = syscall($words[0], @words[1 .. $#words]);
exit($answer == -1 && ($! == 1 || $! == 13 || $! == 38) ? 0 : 1)"#;

/// Tries everything of the kind `what`. It serves where all of it was refused, else it ends with 99.
pub(crate) fn forbidden(settings: &Settings) -> u8 {
    if rustix::process::getuid().is_root() {
        say("not as root\n");
        return 96;
    }
    let what = settings.text("what", "");
    let granted = match what.as_str() {
        "keys" => granted(&KEYS),
        "bpf" => granted(&BPF),
        "rings" => granted(&RINGS),
        "namespaces" => granted(&NAMESPACES),
        "mounts" => granted(&MOUNTS),
        "clocks" => granted(&CLOCKS),
        "init" => granted(&INIT),
        "rights" => granted(&RIGHTS),
        "core-files" => core_files(),
        "devices" => devices(),
        "sockets" => sockets(),
        "kernel-files" => kernel_files(),
        "groups" => report::writable_cgroups(),
        _ => vec![format!("{what} is no kind")],
    };
    if granted.is_empty() {
        return server::serve(settings);
    }
    say(&format!("granted: {}\n", granted.join(", ")));
    99
}

/// A call: its number and its arguments.
type Call = (c_long, &'static [&'static str]);

const KEYS: [Call; 4] = [
    (libc::SYS_add_key, &["@user", "@zoo", "@secret", "6", "-3"]),
    (libc::SYS_add_key, &["@user", "@zoo", "@secret", "6", "-4"]),
    (libc::SYS_request_key, &["@user", "@zoo", "@", "-3"]),
    (libc::SYS_keyctl, &["1", "0"]),
];

const BPF: [Call; 3] = [
    (libc::SYS_bpf, &["0", "@", "72"]),
    (libc::SYS_bpf, &["5", "@", "72"]),
    (libc::SYS_perf_event_open, &["@", "0", "-1", "-1", "0"]),
];

const RINGS: [Call; 2] = [
    (libc::SYS_io_uring_setup, &["8", "@"]),
    (libc::SYS_userfaultfd, &["1"]),
];

/// CLONE_NEWUSER with and without the others; clone with SIGCHLD beside it.
const NAMESPACES: [Call; 5] = [
    (libc::SYS_unshare, &["268435456"]),
    (libc::SYS_unshare, &["805306368"]),
    (libc::SYS_unshare, &["131072"]),
    (libc::SYS_clone, &["268435473", "0", "0", "0", "0"]),
    (libc::SYS_setns, &["0", "0"]),
];

const MOUNTS: [Call; 6] = [
    (libc::SYS_mount, &["@none", "@/tmp", "@tmpfs", "0", "@"]),
    (libc::SYS_mount, &["@/", "@/tmp", "@", "4096", "@"]),
    (libc::SYS_umount2, &["@/proc", "2"]),
    (libc::SYS_pivot_root, &["@/tmp", "@/tmp"]),
    (libc::SYS_chroot, &["@/tmp"]),
    (libc::SYS_open_tree, &["-100", "@/", "1"]),
];

const CLOCKS: [Call; 3] = [
    (libc::SYS_clock_settime, &["0", "@"]),
    (libc::SYS_settimeofday, &["@", "0"]),
    (libc::SYS_clock_adjtime, &["0", "@"]),
];

/// kill with KILL and STOP, PTRACE_ATTACH and PTRACE_SEIZE.
const INIT: [Call; 4] = [
    (libc::SYS_kill, &["1", "9"]),
    (libc::SYS_kill, &["1", "19"]),
    (libc::SYS_ptrace, &["16", "1", "0", "0"]),
    (libc::SYS_ptrace, &["16902", "1", "0", "0"]),
];

/// Root, groups, a priority below 0, a real-time class, the machine's name, a module, an end, memory at
/// addresses that others foresee.
const RIGHTS: [Call; 10] = [
    (libc::SYS_setresuid, &["0", "0", "0"]),
    (libc::SYS_setresgid, &["0", "0", "0"]),
    (libc::SYS_setgroups, &["1", "@"]),
    (libc::SYS_setpriority, &["0", "0", "-20"]),
    (libc::SYS_sched_setscheduler, &["0", "1", "@\u{1}"]),
    (libc::SYS_sethostname, &["@zoo", "3"]),
    (libc::SYS_init_module, &["@", "8", "@"]),
    (libc::SYS_swapoff, &["@/dev/null"]),
    (libc::SYS_reboot, &["0", "0", "0", "0"]),
    (libc::SYS_personality, &["262144"]),
];

/// The calls that were not refused, by their numbers.
fn granted(calls: &[Call]) -> Vec<String> {
    let is_granted = |(number, arguments): &&Call| {
        let mut perl = Command::new("perl");
        perl.args(["-e", CALL, "--", &number.to_string()]);
        let ended = perl.args(*arguments).status();
        // One that could not be tried at all was not refused.
        !ended.is_ok_and(|ended| ended.success())
    };
    let granted = calls.iter().filter(is_granted);
    granted.map(|call| format!("call {}", call.0)).collect()
}

/// The limit of files that a crash leaves.
fn core_files() -> Vec<String> {
    let mut raise = Command::new("/bin/sh");
    let raised = raise.args(["-c", "ulimit -c unlimited"]).status();
    let is_refused = raised.is_ok_and(|raised| !raised.success());
    (!is_refused)
        .then(|| "core files".to_owned())
        .into_iter()
        .collect()
}

/// Devices of its own, and those of the machine: every one that is there, but for those that are
/// everybody's and what stands for a hidden one. Nothing to try shows nothing.
fn devices() -> Vec<String> {
    let own = mknodat(
        CWD,
        "/tmp/disk",
        FileType::BlockDevice,
        Mode::RUSR,
        rustix::fs::makedev(8, 0),
    );
    let mut granted: Vec<String> = own
        .is_ok()
        .then(|| "mknod".to_owned())
        .into_iter()
        .collect();
    let is_everybodys = |path: &Path| {
        let number = std::fs::metadata(path).map(|m| m.rdev());
        let null = std::fs::metadata("/dev/null").map(|m| m.rdev());
        let name = path.file_name().unwrap_or_default();
        path.starts_with("/dev/pts")
            || ["full", "null", "ptmx", "random", "tty", "urandom", "zero"]
                .iter()
                .any(|n| name == *n)
            || number.ok() == null.ok()
    };
    let is_device = |path: &PathBuf| {
        let kind = std::fs::metadata(path).map(|m| m.file_type());
        kind.is_ok_and(|kind| kind.is_char_device() || kind.is_block_device())
    };
    let found = below("/dev").into_iter().filter(is_device);
    let tried: Vec<PathBuf> = found.filter(|path| !is_everybodys(path)).collect();
    if tried.is_empty() {
        granted.push("no device to try".to_owned());
    }
    for path in tried {
        let opens = |write: bool| {
            OpenOptions::new()
                .read(!write)
                .write(write)
                .open(&path)
                .is_ok()
        };
        if opens(false) || opens(true) {
            granted.push(path.display().to_string());
        }
    }
    granted
}

/// Services of the machine: what listens in its file system, its hypervisor, its kernel's log.
fn sockets() -> Vec<String> {
    let mut all: Vec<PathBuf> = ["/run", "/var/run", "/dev"]
        .iter()
        .flat_map(|place| below(place))
        .collect();
    all.retain(|path| UnixStream::connect(path).is_ok() || is_datagram_heard(path));
    let granted = granted(&[
        (libc::SYS_socket, &["40", "1", "0"]),
        (libc::SYS_syslog, &["3", "@", "16"]),
        (libc::SYS_syslog, &["10", "@", "0"]),
    ]);
    all.iter()
        .map(|path| path.display().to_string())
        .chain(granted)
        .collect()
}

fn is_datagram_heard(path: &Path) -> bool {
    UnixDatagram::unbound().is_ok_and(|socket| socket.connect(path).is_ok())
}

/// All that is not a directory below one, links not followed.
fn below(place: &str) -> Vec<PathBuf> {
    let (mut all, mut open) = (Vec::new(), vec![PathBuf::from(place)]);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path())
            } else {
                all.push(entry.path())
            }
        }
    }
    all
}

/// Files by which a process tells the kernel what to do.
fn kernel_files() -> Vec<String> {
    writable(&[
        "/proc/sysrq-trigger",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hostname",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/irq/default_smp_affinity",
        "/proc/1/oom_score_adj",
        "/proc/1/mem",
        "/proc/1/environ",
        "/proc/self/uid_map",
        "/sys/kernel/uevent_helper",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/power/state",
    ])
    .into_iter()
    // Its own is there to write, but says nothing without a namespace of its own.
    .filter(|path| path != "/proc/self/uid_map" || std::fs::write(path, "0 0 1").is_ok())
    .collect()
}

fn writable(paths: &[&str]) -> Vec<String> {
    let is_writable = |path: &&&str| OpenOptions::new().write(true).open(path).is_ok();
    let found = paths.iter().filter(is_writable);
    found.map(|path| (*path).to_owned()).collect()
}

/// Runs a script with the numbers of system calls in `%call`, beside the server.
fn beside(script: &str, settings: &Settings) -> u8 {
    let numbers = format!(
        "my %call = (clone => {}, ptrace => {}, mlockall => {}, mmap => {});\n",
        libc::SYS_clone,
        libc::SYS_ptrace,
        libc::SYS_mlockall,
        libc::SYS_mmap,
    );
    let mut perl = Command::new("perl");
    perl.args(["-e", &(numbers + script), "--"]);
    let count = settings.number("count", 10).to_string();
    match perl.arg(count).spawn() {
        Ok(_beside) => server::serve(settings),
        Err(_) => 97,
    }
}

/// Parents that the kernel holds until their children execute something, which these never do
/// (CLONE_VM, CLONE_VFORK, SIGCHLD).
pub(crate) fn held_parents(settings: &Settings) -> u8 {
    let script = r#"for (1 .. $ARGV[0]) {
    next if fork;
    my $child = syscall($call{clone}, 0x100 | 0x4000 | 17, 0, 0, 0, 0);
    sleep 1 while 1;
}
sleep 1 while 1;"#;
    beside(script, settings)
}

/// Processes in sessions of their own that ignore every signal that can be ignored.
pub(crate) fn deaf_sessions(settings: &Settings) -> u8 {
    let script = r#"use POSIX ();
for (1 .. $ARGV[0]) {
    next if fork;
    POSIX::setsid();
    $SIG{$_} = 'IGNORE' for grep { !/^(KILL|STOP|__)/ } keys %SIG;
    exit 0 if fork;
    sleep 1 while 1;
}
sleep 1 while 1;"#;
    beside(script, settings)
}

/// A ring of processes, each of which traces the one before it (PTRACE_ATTACH), which stands still.
pub(crate) fn traced(settings: &Settings) -> u8 {
    let script = r#"my $before = 0;
for (1 .. $ARGV[0]) {
    my $child = fork;
    if ($child == 0) {
        syscall($call{ptrace}, 16, $before, 0, 0) if $before;
        sleep 1 while 1;
    }
    $before = $child;
}
syscall($call{ptrace}, 16, $before, 0, 0);
sleep 1 while 1;"#;
    beside(script, settings)
}

/// Memory that may not be swapped, and pages of the large kind (MAP_PRIVATE, MAP_ANONYMOUS,
/// MAP_HUGETLB), as far as they are given.
pub(crate) fn locked_memory(settings: &Settings) -> u8 {
    let script = r#"syscall($call{mlockall}, 3);
for (1 .. $ARGV[0]) {
    syscall($call{mmap}, 0, 2 << 20, 3, 0x2 | 0x20 | 0x40000, -1, 0);
}
my $own = "x" x (4 << 20);
sleep 1 while 1;"#;
    beside(script, settings)
}

/// Offers itself to the kernel as the first to be killed, and tries to be the last.
pub(crate) fn oom_score(settings: &Settings) -> u8 {
    let own = "/proc/self/oom_score_adj";
    let is_last = std::fs::write(own, "-1000").is_ok();
    let _ = std::fs::write(own, "1000");
    if is_last { 99 } else { server::serve(settings) }
}
