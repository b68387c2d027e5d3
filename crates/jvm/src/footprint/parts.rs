//! What a process holds in memory, told from its mappings alone: no report of the JVM is needed.
//!
//! Owns how a mapping is known: the heap by its reserved size, a stack by the guard below it, an arena
//! of glibc by its alignment. Facts: proc_pid_smaps(5); HotSpot's os_linux.cpp (guards of stacks),
//! zPhysicalMemoryBacking_linux.cpp (`/memfd:java_heap`, mapped one or three times); glibc's arena.c
//! (HEAP_MAX_SIZE). Measured on JDK 17 and 25.

use std::ops::Range;

use loadline_sizing::Bytes;

use super::smaps::{self, Mapping};
use super::{add_bytes, is_archive, is_file};

/// Reach of compressed pointers: below are the heap, the class archive and the class space of a
/// JVM, and no mappings that the kernel places.
const LOW: u64 = 1 << 36;
const ARENA: u64 = 64 << 20;

/// Largest guard below a stack. Uncommitted memory of the JVM comes in units of 64 KiB.
const GUARD: u64 = 60 << 10;

/// A stack of the default size, guards and rounding apart.
const STACK: Range<u64> = 500 << 10..1100 << 10;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeapHint {
    pub reserved: Vec<Bytes>,
    pub stack: Option<Bytes>,
}

/// Resident memory of a process. All fields but `files` count against a limit and cannot be
/// reclaimed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResidentParts {
    pub heap: Bytes,
    pub shared_heap: Bytes,
    /// The class space of a JVM, as far as compressed pointers make it known.
    pub class_space: Bytes,
    pub code_cache: Bytes,
    pub stacks: Bytes,
    pub malloc: Bytes,
    /// Private copies of file pages.
    pub private_files: Bytes,
    pub shared: Bytes,
    pub other: Bytes,
    pub files: Bytes,
}

pub fn divide_mappings(smaps: &str, hint: &HeapHint) -> ResidentParts {
    let mappings = smaps::parse_smaps(smaps);
    let is_jvm = mappings.iter().any(|m| is_jvm_library(&m.path));
    let has_shared_heap = mappings.iter().any(|m| is_shared_heap(&m.path));
    let is_searched = is_jvm && !has_shared_heap;
    let heap = is_searched.then(|| find_heap(&mappings, hint)).flatten();
    let is_heap = |m: &Mapping| heap.as_ref().is_some_and(|h| h.contains(&m.range.start));
    let mut parts = ResidentParts::default();
    let mut below: Option<&Mapping> = None;
    for (index, mapping) in mappings.iter().enumerate() {
        let above = mappings.get(index + 1);
        if is_file(&mapping.path) && !is_shared(&mapping.path) {
            let pages = mapping.resident.saturating_sub(mapping.anonymous);
            add_bytes(&mut parts.files, pages);
        }
        let part = match mapping.path.as_str() {
            _ if is_heap(mapping) => &mut parts.heap,
            path if is_shared_heap(path) => {
                add_bytes(&mut parts.shared_heap, mapping.proportional);
                continue;
            }
            path if is_shared(path) => {
                add_bytes(&mut parts.shared, mapping.proportional);
                continue;
            }
            path if is_file(path) => &mut parts.private_files,
            "[heap]" => &mut parts.malloc,
            "[stack]" => &mut parts.stacks,
            _ if mapping.permissions.contains('x') => &mut parts.code_cache,
            _ if is_jvm && mapping.range.start < LOW => &mut parts.class_space,
            _ if is_arena(mapping) && has_rest(mapping, above) => &mut parts.malloc,
            _ if below.is_some_and(|below| is_stack(below, mapping, hint)) => &mut parts.stacks,
            _ => &mut parts.other,
        };
        add_bytes(part, mapping.anonymous);
        below = Some(mapping);
    }
    add_bytes(&mut parts.heap, parts.shared_heap);
    parts
}

fn is_jvm_library(path: &str) -> bool {
    path.ends_with("/libjvm.so") || path.contains("/libj9vm")
}

fn is_shared_heap(path: &str) -> bool {
    path.starts_with("/memfd:java_heap")
}

fn is_shared(path: &str) -> bool {
    const PREFIXES: [&str; 4] = ["/memfd:", "/dev/zero", "/dev/shm/", "/SYSV"];
    PREFIXES.iter().any(|prefix| path.starts_with(prefix))
}

fn length(mapping: &Mapping) -> u64 {
    mapping.range.end.saturating_sub(mapping.range.start)
}

fn is_arena(mapping: &Mapping) -> bool {
    let is_placed = mapping.range.start.is_multiple_of(ARENA) && length(mapping) <= ARENA;
    is_placed && mapping.permissions.starts_with("rw")
}

fn has_rest(arena: &Mapping, above: Option<&Mapping>) -> bool {
    let end = arena.range.start.saturating_add(ARENA);
    let is_reserved = |m: &Mapping| {
        m.permissions.starts_with("---") && m.range.start == arena.range.end && m.range.end >= end
    };
    arena.range.end == end || above.is_some_and(is_reserved)
}

/// glibc and HotSpot leave a guard at the lower end of a stack.
fn is_stack(below: &Mapping, mapping: &Mapping, hint: &HeapHint) -> bool {
    let is_guard = below.permissions.starts_with("---") && length(below) <= GUARD;
    let is_beside = below.range.end == mapping.range.start;
    let own = hint.stack.map_or(0, Bytes::as_bytes);
    let is_own = |size: u64| own > 0 && size <= own.saturating_add(GUARD) && size >= own / 2;
    let size = length(mapping);
    let is_sized = STACK.contains(&size) || is_own(size);
    is_guard && is_beside && is_sized && mapping.permissions.starts_with("rw")
}

/// The addresses of the heap: mappings without a gap that together have a size it may have; where no
/// size is known or none fits, the low ones that hold most. Archived objects of the JDK lie in it,
/// as a file.
fn find_heap(mappings: &[Mapping], hint: &HeapHint) -> Option<Range<u64>> {
    let is_possible = |m: &Mapping| m.path.is_empty() || is_archive(&m.path);
    // The run of each mapping, and what lies below it: addresses rise.
    let (mut run, mut sum, mut end) = (0u32, 0u64, 0u64);
    let mut runs = Vec::with_capacity(mappings.len());
    for mapping in mappings {
        let is_joined = is_possible(mapping) && mapping.range.start == end;
        run += u32::from(!is_joined);
        runs.push((run, sum));
        sum = sum.saturating_add(mapping.anonymous.as_bytes());
        end = if is_possible(mapping) {
            mapping.range.end
        } else {
            0
        };
    }
    let sum_to = |index: usize| runs.get(index).map_or(sum, |(_, sum)| *sum);
    let window = |first: usize, size: Bytes| {
        let from = mappings[first].range.start;
        let to = from.checked_add(size.as_bytes())?;
        let last = mappings.partition_point(|m| m.range.end < to);
        let is_whole = last >= first
            && mappings.get(last).is_some_and(|m| m.range.end == to)
            && runs[last].0 == runs[first].0;
        let held = sum_to(last + 1).saturating_sub(runs[first].1);
        is_whole.then_some((from < LOW, held, from..to))
    };
    // An arena of glibc has one of the sizes that a heap may have.
    let is_start = |m: &Mapping| is_possible(m) && (m.range.start < LOW || !is_arena(m));
    let all = (0..mappings.len()).filter(|index| is_start(&mappings[*index]));
    let exact = all.flat_map(|first| {
        hint.reserved
            .iter()
            .filter_map(move |size| window(first, *size))
    });
    let best = exact.max_by_key(|(is_low, held, _)| (*is_low, *held));
    best.map(|(_, _, range)| range)
        .or_else(|| fullest_run(mappings, is_possible))
}

fn fullest_run(mappings: &[Mapping], is_possible: impl Fn(&Mapping) -> bool) -> Option<Range<u64>> {
    let low = mappings.iter().filter(|m| m.range.start < LOW);
    let mut best: Option<(Bytes, Range<u64>)> = None;
    let mut now = (Bytes::default(), 0..0);
    for mapping in low.filter(|m| is_possible(m) && !is_archive(&m.path)) {
        if mapping.range.start != now.1.end {
            now = (Bytes::default(), mapping.range.start..mapping.range.start);
        }
        add_bytes(&mut now.0, mapping.anonymous);
        now.1.end = mapping.range.end;
        if best.as_ref().is_none_or(|best| best.0 < now.0) {
            best = Some(now.clone());
        }
    }
    best.map(|(_, range)| range)
}

#[cfg(test)]
mod tests {
    use super::super::Footprint;
    use super::*;

    fn sum(parts: &ResidentParts) -> Bytes {
        let all = [
            parts.heap,
            parts.class_space,
            parts.code_cache,
            parts.stacks,
            parts.malloc,
            parts.private_files,
            parts.shared,
            parts.other,
            parts.files,
        ];
        all.into_iter()
            .fold(Bytes::default(), Bytes::saturating_add)
    }

    fn is_near(a: Bytes, b: Bytes) -> bool {
        let (a, b) = (a.as_bytes(), b.as_bytes());
        a.abs_diff(b) <= (a.max(b) / 20).max(300 << 10)
    }

    #[test]
    fn mappings_alone_say_what_the_jvms_own_map_says() {
        for (report, smaps) in [
            (
                include_str!("../../tests/data/footprint/17-detail.txt"),
                include_str!("../../tests/data/footprint/17-smaps.txt"),
            ),
            (
                include_str!("../../tests/data/footprint/25-detail.txt"),
                include_str!("../../tests/data/footprint/25-smaps.txt"),
            ),
        ] {
            let told = Footprint::from_nmt_and_smaps(report, smaps).unwrap();
            for reserved in [vec![Bytes::from_mib(64)], Vec::new()] {
                let hint = HeapHint {
                    reserved,
                    stack: None,
                };
                let seen = divide_mappings(smaps, &hint);
                // All but the kernel's own page.
                assert!(told.resident.saturating_sub(sum(&seen)) <= Bytes::from_kib(4));
                for (seen, told) in [
                    (seen.heap, told.heap),
                    (seen.stacks, told.stacks),
                    (seen.code_cache, told.code_cache),
                ] {
                    assert!(is_near(seen, told), "{seen} {told}");
                }
            }
        }
    }

    #[test]
    fn the_heap_of_zgc_counts_once_however_often_it_is_mapped() {
        let view = |from: u64| {
            format!(
                "{from:x}-{:x} rw-s 00000000 00:01 1045 /memfd:java_heap (deleted)\n\
                 Rss: 65536 kB\nPss: 21845 kB\n",
                from + (64 << 20)
            )
        };
        let class_space = "44000000-48000000 rw-p 0 00:00 0\nRss: 900 kB\nAnonymous: 900 kB\n";
        let library = "7f2000000000-7f2000100000 r-xp 0 fe:00 2 /opt/jdk/lib/server/libjvm.so\n";
        let views = [1u64 << 42, 1 << 43, 1 << 44].map(view).concat();
        let smaps = format!("{class_space}{views}{library}");
        let hint = HeapHint {
            reserved: vec![Bytes::from_mib(64)],
            stack: None,
        };
        let parts = divide_mappings(&smaps, &hint);
        assert_eq!(parts.class_space, Bytes::from_kib(900));
        assert_eq!(parts.heap, Bytes::from_kib(3 * 21_845));
        assert_eq!(
            (parts.shared_heap, parts.files),
            (parts.heap, Bytes::default())
        );
    }

    #[test]
    fn archived_objects_lie_in_the_heap_and_the_class_space_does_not() {
        // JDK 17, G1 with 64 MiB; a class space of the same size lies before it.
        let smaps = "\
44000000-48000000 rw-p 00000000 00:00 0
Anonymous: 900 kB
fc000000-ffe00000 rw-p 00000000 00:00 0
Anonymous: 63488 kB
ffe00000-ffe75000 rw-p 00bc1000 fe:00 1 /usr/lib/jvm/17/lib/server/classes.jsa
Rss: 468 kB
Anonymous: 468 kB
ffe75000-100000000 rw-p 00000000 00:00 0
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
Anonymous: 100 kB
7f0000021000-7f0004000000 ---p 00000000 00:00 0
7f0008000000-7f0008400000 rw-p 00000000 00:00 0
Anonymous: 4096 kB
7f1000000000-7f1000004000 ---p 00000000 00:00 0
7f1000004000-7f1000100000 rw-p 00000000 00:00 0
Anonymous: 40 kB
7f2000000000-7f2000100000 r-xp 00000000 fe:00 2 /usr/lib/jvm/17/lib/server/libjvm.so
Rss: 800 kB
";
        let hint = HeapHint {
            reserved: vec![Bytes::from_mib(64)],
            stack: None,
        };
        for hint in [hint, HeapHint::default()] {
            let parts = divide_mappings(smaps, &hint);
            let kib = [parts.class_space, parts.malloc, parts.stacks, parts.files];
            assert_eq!(kib, [900, 100, 40, 800].map(Bytes::from_kib));
            // Without a size the run ends at the file.
            let whole = Bytes::from_kib(63_488 + 468);
            assert_eq!(parts.heap.saturating_add(parts.private_files), whole);
        }
    }
}
