//! The memory of an application by part: all its processes, and the disk behind them.
//!
//! Owns the readings of /proc, of HotSpot's counter file and of the cgroup, each bounded: the
//! application writes part of these. `loadline_jvm::footprint` classifies mappings. Sources:
//! proc_pid_smaps(5); `sun.gc.*` of hsperfdata; kernel Documentation/admin-guide/sysfs-rules and
//! ABI/stable/sysfs-block (`read_ahead_kb`).

use std::fs;
use std::path::{Path, PathBuf};

use loadline_analysis::record::MemoryParts;
use loadline_cgroup::ControlGroup;
use loadline_jvm::footprint::{HeapHint, ResidentParts, divide_mappings};
use loadline_jvm::hsperf::HsperfCounters;
use loadline_protocol::{AppSpec, TrialOrder};
use loadline_sizing::Bytes;
use loadline_sizing::options::JvmOptionSet;

use crate::clock::monotonic_ns;
use crate::process_text::{MOST_PROCESSES, read_bounded, read_status, status_number};
use crate::soaking::heap_committed;

/// Most of smaps that is read, bytes, all processes together: a JVM with thousands of threads has some
/// MB.
const LARGEST_SMAPS: u64 = 64 << 20;

/// Most of another file of /proc that is read, bytes.
const LARGEST_TEXT: u64 = 1 << 20;

/// Generations that tell a reserved size.
const GENERATIONS: u32 = 3;

/// The kernel tells read-ahead in KiB.
const READ_AHEAD: &str = "queue/read_ahead_kb";

const OPTION_VARIABLES: [&str; 5] = [
    "JAVA_TOOL_OPTIONS=",
    "JDK_JAVA_OPTIONS=",
    "_JAVA_OPTIONS=",
    "OPENJ9_JAVA_OPTIONS=",
    "IBM_JAVA_OPTIONS=",
];

/// The parts of all processes of a group after `requests` answers. `None` if the kernel shows none.
pub(crate) fn read_parts(
    processes: &[u32],
    group: &ControlGroup,
    requests: u64,
) -> Option<MemoryParts> {
    let at_ns = monotonic_ns();
    let mut parts = MemoryParts {
        at_ns,
        requests,
        ..MemoryParts::default()
    };
    let (mut left, mut seen) = (LARGEST_SMAPS, 0u32);
    let (mut shared, mut has_shared_heap) = (Bytes::default(), false);
    for pid in processes.iter().take(MOST_PROCESSES) {
        let Some(smaps) = read_smaps(*pid, left) else {
            continue;
        };
        left -= (smaps.len() as u64).min(left);
        let counters = HsperfCounters::for_jvm(*pid).ok();
        let of = divide_mappings(&smaps, &heap_hint(*pid, counters.as_ref()));
        seen += 1;
        has_shared_heap |= of.shared_heap > Bytes::default();
        shared = sum([shared, of.shared_heap, of.shared]);
        add_process(&mut parts, &of, counters.as_ref());
        parts.threads += count_threads(*pid);
    }
    let memory = group.read().ok().and_then(|sample| sample.memory);
    let memory = memory.unwrap_or_default();
    parts.kernel = memory.kernel.unwrap_or_default();
    // Shared and unmapped: committed heap of ZGC, or files of a tmpfs.
    let unmapped = memory.shmem.unwrap_or_default().saturating_sub(shared);
    let part = if has_shared_heap {
        &mut parts.heap
    } else {
        &mut parts.other
    };
    *part = part.saturating_add(unmapped);
    (seen > 0).then_some(parts)
}

/// The parts of one process; `None` where the kernel does not show its mappings.
pub(crate) fn read_process(pid: u32) -> Option<MemoryParts> {
    let smaps = read_smaps(pid, LARGEST_SMAPS)?;
    let counters = HsperfCounters::for_jvm(pid).ok();
    let mut parts = MemoryParts::default();
    let of = divide_mappings(&smaps, &heap_hint(pid, counters.as_ref()));
    add_process(&mut parts, &of, counters.as_ref());
    parts.threads = count_threads(pid);
    Some(parts)
}

fn count_threads(pid: u32) -> u64 {
    let count = read_status(pid).and_then(|text| status_number(&text, "Threads:"));
    count.unwrap_or(0)
}

fn add_process(parts: &mut MemoryParts, of: &ResidentParts, counters: Option<&HsperfCounters>) {
    // Committed, and as a rule touched: the counters are as old as the last collection.
    let told = counters.and_then(|c| c.counter_number("sun.gc.metaspace.capacity"));
    let told = told.map_or_else(Bytes::default, Bytes::from_bytes);
    let rest = of.class_space.saturating_add(of.other);
    let metaspace = told.clamp(of.class_space, rest);
    let other = sum([rest.saturating_sub(metaspace), of.shared]);
    for (part, size) in [
        (&mut parts.heap, of.heap),
        (&mut parts.metaspace, metaspace),
        (&mut parts.code_cache, of.code_cache),
        (&mut parts.stacks, of.stacks),
        (&mut parts.malloc, of.malloc),
        (&mut parts.private_files, of.private_files),
        (&mut parts.other, other),
        (&mut parts.files, of.files),
    ] {
        *part = part.saturating_add(size);
    }
    let committed = counters.and_then(heap_committed).map(Bytes::from_bytes);
    let both = parts.heap_committed.into_iter().chain(committed);
    parts.heap_committed = both.reduce(Bytes::saturating_add);
}

fn sum<const N: usize>(sizes: [Bytes; N]) -> Bytes {
    let sizes = sizes.into_iter();
    sizes.fold(Bytes::default(), Bytes::saturating_add)
}

/// What tells the heap among the mappings: HotSpot's counters, and options as the process has them.
fn heap_hint(pid: u32, counters: Option<&HsperfCounters>) -> HeapHint {
    let words = option_words(pid);
    let options = JvmOptionSet::from_words(words);
    let generation = |n| counters?.counter_number(&format!("sun.gc.generation.{n}.maxCapacity"));
    let generations: Vec<u64> = (0..GENERATIONS).filter_map(generation).collect();
    let page = rustix::param::page_size() as u64;
    // Serial and Parallel divide the heap; in other collectors each generation may take all.
    let all = generations.iter().copied().fold(0, u64::saturating_add);
    let sizes = generations.into_iter().chain([all]);
    let sizes = sizes.map(|size| Bytes::from_bytes(size / page * page));
    let reserved = sizes.chain(options.size_value("MaxHeapSize"));
    HeapHint {
        reserved: reserved.filter(|size| *size > Bytes::default()).collect(),
        stack: options.count_value("ThreadStackSize").map(Bytes::from_kib),
    }
}

fn option_words(pid: u32) -> Vec<String> {
    let read = |name: &str| {
        let text = read_bounded(&format!("/proc/{pid}/{name}"), LARGEST_TEXT);
        let text = text.unwrap_or_default();
        text.split('\0').map(str::to_owned).collect::<Vec<_>>()
    };
    let environment = read("environ");
    let named = |line: &String| {
        let value = |name: &&str| line.strip_prefix(*name).map(str::to_owned);
        OPTION_VARIABLES.iter().find_map(value)
    };
    let values: Vec<String> = environment.iter().filter_map(named).collect();
    let words = values.iter().flat_map(|value| value.split_whitespace());
    words.map(str::to_owned).chain(read("cmdline")).collect()
}

/// Reads at most this many bytes of a process's smaps.
fn read_smaps(pid: u32, most: u64) -> Option<String> {
    read_bounded(&format!("/proc/{pid}/smaps"), most).filter(|text| !text.is_empty())
}

/// Read-ahead of the disk under the application's files; `places` are directories of its container.
/// `None` if no disk is known: a tmpfs, or a file system on several disks.
pub(crate) fn read_ahead(order: &TrialOrder, places: &[PathBuf]) -> Option<Bytes> {
    let words = match &order.app {
        AppSpec::Command { command, .. } => command.as_slice(),
        AppSpec::Image(_) => &[],
    };
    // The last file of a command is its jar, or its class path; the first its JDK.
    let named = words.iter().rev().map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute() && path.is_file());
    let all = named.chain(places.iter().cloned());
    all.chain([order.scratch.clone()]).find_map(|path| {
        let there = path.ancestors().find(|place| place.exists())?;
        let device = rustix::fs::stat(there).ok()?.st_dev;
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        disk_read_ahead(Path::new("/sys/dev/block"), major, minor)
    })
}

/// A partition has no queue: its disk's is one directory up.
fn disk_read_ahead(devices: &Path, major: u32, minor: u32) -> Option<Bytes> {
    let device = fs::canonicalize(devices.join(format!("{major}:{minor}"))).ok()?;
    let disk = [Some(device.as_path()), device.parent()];
    let read = |at: &Path| fs::read_to_string(at.join(READ_AHEAD)).ok();
    let text = disk.into_iter().flatten().find_map(read)?;
    text.trim().parse().ok().map(Bytes::from_kib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_any_program_are_read() {
        let own = std::process::id();
        let parts = read_parts(&[own], &ControlGroup::out_of_reach("x"), 7).expect("its own");
        assert!(parts.threads > 0 && parts.requests == 7, "{parts:?}");
        assert!(parts.malloc > Bytes::default(), "{parts:?}");
        assert!(parts.files > Bytes::from_kib(500), "{parts:?}");
        assert_eq!((parts.heap, parts.kernel), Default::default());
        assert_eq!(
            read_parts(&[u32::MAX], &ControlGroup::out_of_reach("x"), 0),
            None
        );
        assert!(read_smaps(own, 100).is_some_and(|text| text.len() <= 100));
    }

    #[test]
    fn metaspace_is_what_the_counters_say_as_far_as_it_is_there() {
        let of = ResidentParts {
            class_space: Bytes::from_mib(3),
            other: Bytes::from_mib(5),
            shared: Bytes::from_mib(1),
            ..ResidentParts::default()
        };
        let mut parts = MemoryParts::default();
        add_process(&mut parts, &of, None);
        let mib = |parts: &MemoryParts| (parts.metaspace, parts.other);
        assert_eq!(mib(&parts), (Bytes::from_mib(3), Bytes::from_mib(6)));
        assert_eq!(parts.unreclaimable(), Bytes::from_mib(9));
    }

    #[test]
    fn the_read_ahead_of_a_partition_is_its_disks() {
        let tree = tempfile::tempdir().expect("a directory");
        let disk = tree.path().join("vda");
        fs::create_dir_all(disk.join("vda1")).expect("directories");
        fs::create_dir_all(disk.join("queue")).expect("directories");
        fs::write(disk.join(READ_AHEAD), "8192\n").expect("a file");
        let devices = tree.path().join("dev");
        fs::create_dir(&devices).expect("a directory");
        std::os::unix::fs::symlink(&disk, devices.join("254:0")).expect("a link");
        std::os::unix::fs::symlink(disk.join("vda1"), devices.join("254:1")).expect("a link");
        for minor in [0, 1] {
            let found = disk_read_ahead(&devices, 254, minor);
            assert_eq!(found, Some(Bytes::from_mib(8)));
        }
        assert_eq!(disk_read_ahead(&devices, 0, 23), None);
    }
}
