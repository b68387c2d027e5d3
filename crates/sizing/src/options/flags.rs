//! HotSpot's flags: who may set each, the form of its value and its range.
//!
//! Owns the table as 17.0.15 and 25.0.3 print it on x86-64 (`-XX:+PrintFlagsFinal`,
//! `-XX:+PrintFlagsRanges`, both unlocked), with the flags that they accept and ignore, and what follows
//! from it for the versions between. Versions in numbers are `gate`'s.

use super::words::has_word;
use super::{Bytes, parse_size};

/// A line a flag: name, form (`b` switch, `i` and `u` whole number with and without a sign, `z` amount of
/// memory, `d` decimal number, `s` text), kind in 17 and in 25 (`p` product, `d` diagnostic, `e`
/// experimental, `o` ignored, `-` unknown, `?` of other processors, systems or versions between), the
/// range or the texts that it takes in both, or those of each.
const TABLE: &str = include_str!("flags.txt");

/// The JDKs of the table; between them a flag of either may be known.
const MEASURED: [u32; 2] = [17, 25];

/// Flags with a range that 8 checks, too; it takes the others as they are.
const CHECKED_BY_8: &str = "\
    CompressedClassSpaceSize InitiatingHeapOccupancyPercent MaxGCPauseMillis MaxHeapFreeRatio \
    MaxTenuringThreshold MinHeapFreeRatio ObjectAlignmentInBytes SurvivorRatio TieredStopAtLevel";

/// Begins of flags that other builds of HotSpot know: with CRaC (Azul, BellSoft), Azul Prime, Dragonwell,
/// GraalVM, SapMachine.
const OF_OTHER_BUILDS: &str = "\
    CRaC CREngine CNCEngine GPGC Falcon ProfileLog UseZing UseZST UseWisp Wisp EnableCoroutine \
    CompilationWarmUp ElasticHeap MultiTenant Graal EnableVitals Vitals DumpVitals MallocTrace";

#[derive(Clone, Copy)]
pub(crate) struct FlagRow {
    form: char,
    kinds: [char; 2],
    ranges: [&'static str; 2],
}

pub(crate) fn find_flag(name: &str) -> Option<FlagRow> {
    let line = TABLE.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?;
        rest.strip_prefix(' ')
    })?;
    let mut parts = line.split(' ');
    let form = parts.next()?.chars().next()?;
    let mut kinds = parts.next()?.chars();
    let first = parts.next().unwrap_or("..");
    Some(FlagRow {
        form,
        kinds: [kinds.next()?, kinds.next()?],
        ranges: [first, parts.next().unwrap_or(first)],
    })
}

pub(crate) fn flag_names() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter_map(|line| line.split(' ').next())
}

/// Whether a version may know a flag that has no row in the table of versions.
pub(crate) fn may_be_known(feature: u32, name: &str) -> bool {
    let [old, new] = MEASURED;
    match find_flag(name) {
        Some(row) if feature <= old => row.kinds[0] != '-',
        Some(row) if feature >= new => row.kinds[1] != '-',
        Some(_) => true,
        None => {
            let mut begins = OF_OTHER_BUILDS.split_whitespace();
            let is_other = begins.any(|begin| name.starts_with(begin));
            is_other || !(old..=new).contains(&feature)
        }
    }
}

/// What unlocks a flag, where all that is known of this version says that it is locked. Many a flag was
/// open before 17.
pub(crate) fn find_lock(feature: u32, name: &str) -> Option<&'static str> {
    let row = find_flag(name)?;
    let kind = match MEASURED {
        [old, _] if feature < old => return None,
        [old, _] if feature == old => row.kinds[0],
        [_, new] if feature >= new => row.kinds[1],
        _ if row.kinds[0] == row.kinds[1] => row.kinds[0],
        _ => return None,
    };
    match kind {
        'd' => Some("diagnostic"),
        'e' => Some("experimental"),
        _ => None,
    }
}

/// What a flag expects instead of this value; `None` where a value is right or nothing is known.
/// `is_signed`: written with `+` or `-`.
pub(crate) fn check_value(
    feature: u32,
    name: &str,
    (value, is_signed): (&str, bool),
) -> Option<String> {
    let row = find_flag(name)?;
    // A text of 25 may be newer than what is between.
    let range = row.ranges[usize::from(feature >= if row.form == 's' { 24 } else { 18 })];
    let number = match row.form {
        '?' => return None,
        'b' => return (!is_signed).then(|| format!("-XX:+{name} or -XX:-{name}")),
        _ if is_signed => return Some(format!("-XX:{name}=VALUE")),
        's' => {
            let is_taken = range == ".." || range.split(',').any(|text| text == value);
            return (!is_taken).then(|| format!("one of {}", range.replace(',', ", ")));
        }
        'd' => parse_decimal(feature, value),
        form => parse_whole(value).filter(|number| form == 'i' || *number >= 0.0),
    };
    let Some(number) = number else {
        return Some(match row.form {
            'd' => "a number such as 75.0".to_owned(),
            'z' => "an amount such as 512m or 1g".to_owned(),
            _ => "a whole number".to_owned(),
        });
    };
    // A stack has a least size, which is no flag's range.
    let is_checked = feature > 8 || has_word(CHECKED_BY_8, name);
    let (least, most) = range
        .split_once("..")
        .filter(|_| is_checked && name != "ThreadStackSize")?;
    let (low, high) = (least.parse::<f64>().ok(), most.parse::<f64>().ok());
    let is_inside = low.is_none_or(|low| number >= low) && high.is_none_or(|high| number <= high);
    let shown = |text: &str| match text.parse().map(Bytes::from_bytes) {
        Ok(size) if row.form == 'z' => size.to_jvm_size(),
        _ => text.to_owned(),
    };
    (!is_inside).then(|| match (low, high) {
        (Some(1.0), None) => "a number above 0".to_owned(),
        (_, None) => format!("at least {}", shown(least)),
        (None, Some(_)) => format!("at most {}", shown(most)),
        (Some(_), Some(_)) => format!("{} to {}", shown(least), shown(most)),
    })
}

/// A decimal number: 17 takes digits and a point between them, 25 all that C's `strtod` takes.
fn parse_decimal(feature: u32, text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text).split('.');
    let is_plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let is_taken = feature > 17 || digits.clone().count() <= 2 && digits.clone().all(is_plain);
    text.parse().ok().filter(|_| is_taken)
}

/// A whole number, with a unit as amounts have it: `-XX:ThreadStackSize=1k` are 1024 KiB.
fn parse_whole(text: &str) -> Option<f64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1.0, digits),
        None => (1.0, text),
    };
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit());
    let size = parse_size(digits).filter(|_| is_number)?;
    Some(sign * size.as_bytes() as f64)
}
