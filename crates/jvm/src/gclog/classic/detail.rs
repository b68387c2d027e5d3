//! Lines of a classic log without counted data: details of a pause, heap tables.
//!
//! Owns the list that distinguishes such a line from foreign text.

const BEGINS: [&[u8]; 31] = [
    b"Heap",
    b"{Heap",
    b"PSYoungGen",
    b"ParOldGen",
    b"PSOldGen",
    b"PSPermGen",
    b"def new generation",
    b"par new generation",
    b"tenured generation",
    b"concurrent mark-sweep generation",
    b"concurrent-mark-sweep perm gen",
    b"compacting perm gen",
    b"garbage-first heap",
    b"region size ",
    b"eden space",
    b"from space",
    b"to   space",
    b"to space",
    b"the space",
    b"object space",
    b"class space",
    b"Metaspace",
    b"No shared spaces",
    b"Desired survivor size",
    b"- age ",
    b"Avg:",
    b"Sum:",
    b"Shenandoah Heap",
    b"GC STATISTICS",
    b"Statistics for BinaryTree",
    b"TLAB: gc thread",
];

/// Whether it is one: by its first words, or an indented `[Name ... ms]`, `[Name ...: ...]`.
pub(super) fn is_detail(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    let is_bracketed = text.len() < line.len() && matches!(text, [b'[', b'A'..=b'Z', ..]);
    is_bracketed || text == b"}" || BEGINS.iter().any(|begin| text.starts_with(begin))
}

/// Whether it is a heap table, which no other text has: its first line, or a generation in it,
/// ` PSYoungGen      total 76800K, used 66048K [0x...`. All that a JVM without collections writes.
pub(super) fn is_heap_table(line: &[u8]) -> bool {
    line.starts_with(b"{Heap before ")
        || line == b"Shenandoah Heap"
        || is_detail(line) && memchr::memmem::find(line, b"K, used ").is_some()
}
