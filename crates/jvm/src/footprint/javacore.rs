//! The text of an OpenJ9 Java dump: address ranges by purpose, and the usage of its parts.
//!
//! Owns the text form, and the mapping of OpenJ9's parts to [`super::Footprint`]'s regions:
//! HotSpot's categories. NATIVEMEMINFO is *allocated* memory: for the heap, the code cache and
//! stacks it is address space, most of which is untouched, so addresses are used for these.
//! Segments of classes and data are scattered in mostly untouched ranges, but report their usage.
//! Source: OpenJ9 documentation, "Java dump" (MEMINFO, NATIVEMEMINFO, THREADS, CLASSES).

use std::ops::Range;

use loadline_sizing::Bytes;

use super::regions::ReservedRange;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Javacore {
    /// Addresses of the heap, of code and of stacks.
    pub reserved: Vec<ReservedRange>,
    /// Category and its used bytes outside those addresses.
    pub used: Vec<(&'static str, Bytes)>,
    /// Category and its allocated bytes, which may be more than was touched: the collector's tables
    /// are allocated for the largest heap.
    pub allocated: Vec<(&'static str, Bytes)>,
    pub threads: u64,
    pub classes: u64,
}

/// Where segments begin to be of the JIT's code: one range, known by its addresses.
const CODE: &str = "JIT Code Cache";

impl Javacore {
    pub fn from_dump(text: &str) -> Option<Self> {
        let mut javacore = Self::default();
        let mut segments = "";
        let mut users = Vec::new();
        for line in text.lines() {
            let (tag, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
            let rest = rest.trim();
            match tag {
                "1STHEAPREGION" => javacore.reserve(range(rest, 1), "Java Heap"),
                "1STSEGTYPE" => segments = rest,
                // Begin, how far it is used, end.
                "1STSEGMENT" if segments == CODE => javacore.reserve(range(rest, 2), "Code"),
                "1STSEGINUSE" if segments != CODE => javacore.used.extend(in_use(segments, rest)),
                "3XMTHREADINFO2" => {
                    let stack = stack(rest);
                    javacore.threads += u64::from(stack.is_some());
                    javacore.reserve(stack, "Thread");
                }
                "3CLNMBRLOADEDCL" => {
                    let number = rest.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok());
                    javacore.classes = javacore.classes.saturating_add(number.unwrap_or_default());
                }
                _ => users.extend(user(tag, rest)),
            }
        }
        javacore.allocated = allocated_sizes(&users).into();
        let is_there = !javacore.reserved.is_empty() && !users.is_empty();
        is_there.then_some(javacore)
    }

    fn reserve(&mut self, range: Option<Range<u64>>, category: &str) {
        let range = range.filter(|range| range.start < range.end);
        self.reserved.extend(range.map(|range| ReservedRange {
            range,
            category: category.to_owned(),
        }));
    }
}

/// `0x00007F99101115E0 0x00000000F3800000 0x00000000F3E00000 ...`: an identifier, then the begin,
/// and the end `end` words after it.
fn range(text: &str, end: usize) -> Option<Range<u64>> {
    let mut words = text.split_whitespace().skip(1);
    let from = address(words.next()?)?;
    Some(from..address(words.nth(end - 1)?)?)
}

/// `(native stack address range from:0x00007F9908876000, to:0x00007F99088F6000, size:0x80000)`.
fn stack(text: &str) -> Option<Range<u64>> {
    let at = |name: &str| address(text.split_once(name)?.1.split([',', ')']).next()?);
    Some(at("from:")?..at("to:")?)
}

fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// `Total memory in use:                15650088 (0x0000000000EECD28)` of a kind of segments.
fn in_use(segments: &str, text: &str) -> Option<(&'static str, Bytes)> {
    let number = text.split_once(':')?.1.split_whitespace().next()?;
    let category = match segments {
        "Class Memory" => "Class",
        _ => "Internal",
    };
    Some((category, Bytes::from_bytes(number.parse().ok()?)))
}

/// A line of NATIVEMEMINFO: depth, name, bytes with everything below it.
type User = (u32, String, u64);

/// `3MEMUSER       |  +--Memory Manager (GC): 215,295,368 bytes / 680 allocations`.
fn user(tag: &str, rest: &str) -> Option<User> {
    let depth = tag.strip_suffix("MEMUSER")?.parse().ok()?;
    let text = rest
        .trim_start_matches(['|', ' '])
        .trim_start_matches("+--");
    let (name, size) = text.rsplit_once(": ")?;
    let size = size.split_once(" bytes")?.0.replace(',', "");
    Some((depth, name.to_owned(), size.parse().ok()?))
}

fn allocated_sizes(users: &[User]) -> [(&'static str, Bytes); 5] {
    let of = |name: &str| {
        let all = users.iter().filter(|(_, n, _)| n == name);
        all.fold(0, |sum: u64, (_, _, size)| sum.saturating_add(*size))
    };
    let less = |whole: &str, parts: &[&str]| {
        let parts = parts.iter().map(|part| of(part));
        parts.fold(of(whole), u64::saturating_sub)
    };
    let direct = of("Direct Byte Buffers");
    let vm = ["Modules", "Trace", "JVMTI", "JNI", "Class Libraries"];
    let vm = vm.into_iter().map(of).fold(0, u64::saturating_add);
    [
        ("Other", direct),
        ("Thread", less("Threads", &["Native Stack"])),
        (
            "Internal",
            less("JIT", &["JIT Code Cache", "JIT Data Cache"]),
        ),
        ("Internal", vm.saturating_sub(direct)),
        ("GC", less("Memory Manager (GC)", &["Java Heap"])),
    ]
    .map(|(category, size)| (category, Bytes::from_bytes(size)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of a dump of OpenJ9 cf92035774.
    const DUMP: &str = "\
1STHEAPTYPE    Object Memory
1STHEAPREGION  0x00007F99101115E0 0x00000000F3800000 0x00000000F3E00000 0x0000000000600000 Generational/Tenured Region
1STHEAPREGION  0x00007F9910110DA0 0x00000000FFE20000 0x0000000100000000 0x00000000001E0000 Generational/Nursery Region
1STSEGTYPE     Internal Memory
1STSEGMENT     0x00007F99100EF9B8 0x00007F990A500000 0x00007F990A5832E0 0x00007F990A600000 0x10800440 0x0000000000100000
1STSEGINUSE    Total memory in use:              3573872 (0x0000000000368870)
1STSEGTYPE     Class Memory
1STSEGINUSE    Total memory in use:             15650088 (0x0000000000EECD28)
1STSEGTYPE     JIT Code Cache
1STSEGMENT     0x00007F99101750A8 0x00007F9899400000 0x00007F989947E600 0x00007F98A9400000 0x00000068 0x0000000010000000
1STSEGINUSE    Total memory in use:               517632 (0x000000000007E600)
2MEMUSER       +--VM: 458,643,864 bytes / 5397 allocations
3MEMUSER       |  +--Memory Manager (GC): 215,295,368 bytes / 680 allocations
4MEMUSER       |  |  +--Java Heap: 209,776,640 bytes / 1 allocation
3MEMUSER       |  +--Threads: 21,505,624 bytes / 211 allocations
4MEMUSER       |  |  +--Native Stack: 20,578,304 bytes / 33 allocations
2MEMUSER       +--JIT: 274,928,440 bytes / 261 allocations
3MEMUSER       |  +--JIT Code Cache: 268,435,456 bytes / 1 allocation
3MEMUSER       |  +--JIT Data Cache: 2,097,152 bytes / 1 allocation
5MEMUSER       |  |  |  +--Direct Byte Buffers: 528 bytes / 6 allocations
3XMTHREADINFO2            (native stack address range from:0x00007F9908876000, to:0x00007F99088F6000, size:0x80000)
3CLNMBRLOADEDCL\t\t\tNumber of loaded classes 2529
3CLNMBRLOADEDCL\t\t\tNumber of loaded classes 12
";

    #[test]
    fn addresses_and_what_is_used_are_read() {
        let read = Javacore::from_dump(DUMP).expect("it has memory");
        assert_eq!((read.classes, read.threads), (2541, 1));
        let ranges = |category: &str| {
            let all = read.reserved.iter().filter(|r| r.category == category);
            all.map(|r| r.range.end - r.range.start).collect::<Vec<_>>()
        };
        assert_eq!(ranges("Java Heap"), [6 << 20, 0x1E_0000]);
        assert_eq!(
            ranges("Code"),
            [256 << 20],
            "the whole cache, not the used part"
        );
        assert_eq!(ranges("Thread"), [512 << 10]);
        let bytes = |parts: &[(&'static str, Bytes)]| {
            let parts = parts.iter().map(|(c, b)| (*c, b.as_bytes()));
            parts.collect::<Vec<_>>()
        };
        let used = [("Internal", 3_573_872), ("Class", 15_650_088)];
        assert_eq!(bytes(&read.used), used);
        assert_eq!(
            bytes(&read.allocated),
            [
                ("Other", 528),
                ("Thread", 927_320),
                ("Internal", 4_395_832),
                ("Internal", 0),
                ("GC", 5_518_728),
            ]
        );
    }

    #[test]
    fn what_is_no_dump_is_none() {
        assert_eq!(Javacore::from_dump(""), None);
        assert_eq!(
            Javacore::from_dump("1STHEAPREGION 0x1 0x2 0x3 x"),
            None,
            "no NATIVEMEMINFO"
        );
        assert_eq!(
            Javacore::from_dump("2MEMUSER +--VM: 1 bytes / 1 allocation"),
            None
        );
        let odd = "1STHEAPREGION  0x1 0x9 0x3\n1STSEGMENT\n3XMTHREADINFO2 (from:0x1\n3MEMUSER |  +--: , bytes";
        assert_eq!(Javacore::from_dump(odd), None);
    }
}
