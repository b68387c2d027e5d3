//! The memory calculators of Paketo (libjvm) and Cloud Foundry (v4): one formula, two texts.
//!
//! Source: behaviour of paketo-buildpacks/libjvm and cloudfoundry/java-buildpack-memory-calculator;
//! metaspace = 14,000,000 + 5,800 x classes, the rest to the heap; everything truncated to KiB.

use std::fmt;

use super::LauncherOutput;
use crate::Bytes;
use crate::options::JvmOptionSet;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    Paketo,
    CloudFoundry,
}

#[derive(Debug, Clone, Copy)]
pub struct CalculatorInput<'a> {
    pub total: Bytes,
    pub classes: u64,
    pub threads: u64,
    /// Percentage kept free.
    pub headroom_percent: u64,
    /// The user's options; the five memory flags are budgeted and not repeated.
    pub options: &'a JvmOptionSet,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoesNotFit {
    pub text: String,
}

impl fmt::Display for DoesNotFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl std::error::Error for DoesNotFit {}

const MOST: Bytes = Bytes::from_gib(64 * 1024);

struct RegionSizes {
    headroom: Bytes,
    direct: Bytes,
    metaspace: Bytes,
    code_cache: Bytes,
    stack: Bytes,
    threads: u64,
}

impl RegionSizes {
    fn for_input(input: &CalculatorInput<'_>, total: Bytes) -> Self {
        let options = input.options;
        let set = |flag: &str| options.size_value(flag);
        let stack = options.count_value("ThreadStackSize").map(Bytes::from_kib);
        Self {
            headroom: total.mul_ratio(input.headroom_percent, 100),
            direct: set("MaxDirectMemorySize").unwrap_or(Bytes::from_mib(10)),
            metaspace: set("MaxMetaspaceSize")
                .unwrap_or_else(|| Bytes::from_bytes(14_000_000 + 5_800 * input.classes)),
            code_cache: set("ReservedCodeCacheSize").unwrap_or(Bytes::from_mib(240)),
            stack: stack.unwrap_or(Bytes::from_mib(1)),
            threads: input.threads,
        }
    }

    fn fixed_sum(&self) -> Bytes {
        let stacks = self.stack.mul_ratio(self.threads, 1);
        let regions = [self.direct, self.metaspace, self.code_cache, stacks];
        regions
            .into_iter()
            .fold(Bytes::default(), Bytes::saturating_add)
    }

    fn list_regions(&self, times: char) -> String {
        format!(
            "-XX:MaxDirectMemorySize={}, -XX:MaxMetaspaceSize={}, -XX:ReservedCodeCacheSize={}, -Xss{} {times} {} threads",
            print_size(self.direct),
            print_size(self.metaspace),
            print_size(self.code_cache),
            print_size(self.stack),
            self.threads
        )
    }
}

pub fn calculate_memory(
    flavour: Flavour,
    input: &CalculatorInput<'_>,
) -> Result<LauncherOutput, DoesNotFit> {
    let total = input.total.min(MOST);
    let sizes = RegionSizes::for_input(input, total);
    let set_heap = input.options.size_value("MaxHeapSize");
    let non_heap = sizes.fixed_sum().saturating_add(sizes.headroom);
    let all = non_heap.saturating_add(set_heap.unwrap_or_default());
    let refusal = match flavour {
        Flavour::Paketo => paketo_refusal(&sizes, total, set_heap, non_heap, all),
        Flavour::CloudFoundry => cloud_foundry_refusal(&sizes, total, set_heap, all),
    };
    if let Some(text) = refusal {
        return Err(DoesNotFit { text });
    }
    let heap = total.saturating_sub(non_heap);
    let is_set = |flag: &str| input.options.is_set(flag);
    let rows = [
        (
            "MaxDirectMemorySize",
            "-XX:MaxDirectMemorySize=",
            sizes.direct,
        ),
        ("MaxHeapSize", "-Xmx", heap),
        ("MaxMetaspaceSize", "-XX:MaxMetaspaceSize=", sizes.metaspace),
        (
            "ReservedCodeCacheSize",
            "-XX:ReservedCodeCacheSize=",
            sizes.code_cache,
        ),
        ("ThreadStackSize", "-Xss", sizes.stack),
    ];
    // Paketo's order; Cloud Foundry prints stack before heap.
    let mut rows: Vec<_> = rows
        .into_iter()
        .filter(|(flag, ..)| !is_set(flag))
        .collect();
    if flavour == Flavour::CloudFoundry {
        let order = |flag: &str| match flag {
            "MaxDirectMemorySize" => 0,
            "MaxMetaspaceSize" => 1,
            "ReservedCodeCacheSize" => 2,
            "ThreadStackSize" => 3,
            _ => 4,
        };
        rows.sort_by_key(|(flag, ..)| order(flag));
    }
    Ok(LauncherOutput {
        options: rows
            .into_iter()
            .map(|(_, o, size)| format!("{o}{}", print_size(size)))
            .collect(),
        leaves_out: "the collector's own memory, JIT arenas, malloc, CDS; never chooses collector or JIT; \
                     counts reserved stacks and code cache as used",
    })
}

fn paketo_refusal(
    sizes: &RegionSizes,
    total: Bytes,
    set_heap: Option<Bytes>,
    non_heap: Bytes,
    all: Bytes,
) -> Option<String> {
    let list = sizes.list_regions('*');
    let available = print_size(total);
    let says = |what: &str, needed: Bytes, list: String| {
        let needed = print_size(needed);
        Some(format!(
            "{what} memory regions require {needed} which is greater than {available} available for allocation: {list}"
        ))
    };
    let headroom = print_size(sizes.headroom);
    if sizes.fixed_sum() > total {
        says("fixed", sizes.fixed_sum(), list)
    } else if non_heap > total {
        says("non-heap", non_heap, format!("{headroom} headroom, {list}"))
    } else if all > total {
        let heap = print_size(set_heap.unwrap_or_default());
        says(
            "all",
            all,
            format!("-Xmx{heap}, {headroom} headroom, {list}"),
        )
    } else {
        None
    }
}

fn cloud_foundry_refusal(
    sizes: &RegionSizes,
    total: Bytes,
    set_heap: Option<Bytes>,
    all: Bytes,
) -> Option<String> {
    if all <= total {
        return None;
    }
    let list = match set_heap {
        Some(heap) => {
            sizes
                .list_regions('x')
                .replacen(", ", &format!(", -Xmx{}, ", print_size(heap)), 1)
        }
        None => sizes.list_regions('x'),
    };
    Some(format!(
        "required memory {} is greater than {} available for allocation: {list}",
        print_size(all),
        print_size(total)
    ))
}

/// Truncated to KiB, then the largest unit that divides it; below 1 KiB `0`.
fn print_size(size: Bytes) -> String {
    let kib = size.as_bytes() / 1024;
    match kib {
        0 => "0".to_owned(),
        k if k % (1 << 30) == 0 => format!("{}T", k >> 30),
        k if k % (1 << 20) == 0 => format!("{}G", k >> 20),
        k if k % (1 << 10) == 0 => format!("{}M", k >> 10),
        k => format!("{k}K"),
    }
}
