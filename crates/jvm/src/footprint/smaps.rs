//! The text of /proc/PID/smaps: what each mapping holds in memory.
//!
//! Owns the form; `Rss`, `Pss` and `Anonymous` are all that is read. Facts: proc_pid_smaps(5).

use std::ops::Range;

use loadline_sizing::Bytes;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub range: Range<u64>,
    /// `rw-p`.
    pub permissions: String,
    /// The file, `[heap]`, `[stack]`, or nothing.
    pub path: String,
    pub resident: Bytes,
    /// Resident size, each page divided by the number of mappings that have it.
    pub proportional: Bytes,
    /// What of the resident pages is no page of the file: private copies, or all of an anonymous mapping.
    pub anonymous: Bytes,
}

pub fn parse_smaps(text: &str) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        if let Some(mapping) = parse_mapping_header(line) {
            mappings.push(mapping);
        } else if let Some(mapping) = mappings.last_mut() {
            if let Some(size) = parse_size_field(line, "Rss:") {
                mapping.resident = size;
            } else if let Some(size) = parse_size_field(line, "Pss:") {
                mapping.proportional = size;
            } else if let Some(size) = parse_size_field(line, "Anonymous:") {
                mapping.anonymous = size;
            }
        }
    }
    mappings
}

/// `54001000-54d95000 rw-p 00001000 fe:00 315633    /usr/lib/jvm/...`.
fn parse_mapping_header(line: &str) -> Option<Mapping> {
    let mut words = line.split_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let range = address(from)?..address(to)?;
    let permissions = words.next().unwrap_or_default().to_owned();
    // Offset, device, inode; then the path, which may hold blanks.
    let path = words.skip(3).collect::<Vec<_>>().join(" ");
    Some(Mapping {
        range,
        permissions,
        path,
        resident: Bytes::default(),
        proportional: Bytes::default(),
        anonymous: Bytes::default(),
    })
}

/// `Rss:               13808 kB`.
fn parse_size_field(line: &str, name: &str) -> Option<Bytes> {
    let number = line.strip_prefix(name)?.trim().strip_suffix("kB")?.trim();
    number.parse().ok().map(Bytes::from_kib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_have_addresses_paths_and_sizes() {
        let text = "54001000-54d95000 rw-p 00001000 fe:00 315633                     /opt/a b.jsa\n\
                    Size:              13904 kB\nRss:               13808 kB\nPss:                   4 kB\n\
                    Anonymous:          9000 kB\nAnonHugePages:         0 kB\n\
                    7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \nRss:                   4 kB\n";
        let mappings = parse_smaps(text);
        assert_eq!(mappings.len(), 2);
        assert_eq!(mappings[0].path, "/opt/a b.jsa");
        assert_eq!(mappings[0].permissions, "rw-p");
        assert_eq!(mappings[0].proportional, Bytes::from_kib(4));
        assert_eq!(mappings[0].range, 0x5400_1000..0x54d9_5000);
        assert_eq!(mappings[0].resident, Bytes::from_kib(13_808));
        assert_eq!(mappings[0].anonymous, Bytes::from_kib(9000));
        assert_eq!(mappings[1].path, "");
        assert_eq!(mappings[1].resident, Bytes::from_kib(4));
        assert!(parse_smaps("nonsense\n\n-\n").is_empty());
    }
}
