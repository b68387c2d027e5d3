//! OpenJ9's shared class cache: the options of each step, and what its statistics say.
//!
//! Owns texts only: populate with room, read how full it is, make it anew at that size, populate
//! again, use it read-only. The steps and the formula of the size are those of Open Liberty's
//! `populate_scc.sh` \[openj9\]. Tried on OpenJ9 25: it names the file itself, makes its directory
//! for its own user alone, and leaves dumps behind where it meets a damaged cache.

use std::path::Path;

use loadline_sizing::Bytes;

/// Size of the cache that is filled first.
pub const FIRST_SIZE: Bytes = Bytes::from_mib(80);

/// Name of the cache within its directory.
const NAME: &str = "loadline";

/// Options of a run that fills the cache in a directory, at this size.
pub fn populate(directory: &Path, size: Bytes) -> Vec<String> {
    vec![
        base(directory),
        format!("-Xscmx{}", size.jvm()),
        "-XX:+IProfileDuringStartupPhase".to_owned(),
    ]
}

/// Options of a start that uses it and changes nothing in it; it starts without one, too.
pub fn attach(directory: &Path) -> Vec<String> {
    vec![format!("{},readonly,nonfatal", base(directory))]
}

/// The same, and the JVM says of each class whether it was there.
pub fn witness(directory: &Path) -> Vec<String> {
    vec![format!("{},readonly,nonfatal,verboseIO", base(directory))]
}

/// Whether a JVM calls a cache of that name so, as `C290M25F1A64P_loadline_G45L00`. Nothing else
/// of what an application hands over becomes a file's name.
pub fn is_file_name(text: &str) -> bool {
    let Some((version, generation)) = text.split_once(&format!("_{NAME}_")) else {
        return false;
    };
    let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    version.starts_with('C')
        && version.ends_with('P')
        && version.len() < 40
        && generation.starts_with('G')
        && generation.len() < 20
        && is_plain(version)
        && is_plain(generation)
}

/// Option of a JVM that prints the statistics and ends.
pub fn print_statistics(directory: &Path) -> String {
    format!("{},printStats", base(directory))
}

/// Option of a JVM that removes the cache and ends.
pub fn destroy(directory: &Path) -> String {
    format!("{},destroyAll", base(directory))
}

fn base(directory: &Path) -> String {
    format!(
        "-Xshareclasses:name={NAME},cacheDir={}",
        directory.display()
    )
}

/// What `printStats` says of the top layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Its size.
    pub size: Bytes,
    /// How full it is, percent.
    pub full: u64,
    /// Classes in all layers.
    pub classes: u64,
    /// Methods with compiled code in all layers.
    pub aot_methods: u64,
}

impl Statistics {
    /// Reads the output; `None` when it has no such figures (an error text, another JVM).
    pub fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let line = text.lines().find_map(|l| l.trim().strip_prefix(name))?;
            line.trim_start().strip_prefix('=')?.trim().parse().ok()
        };
        let full = text.lines().find_map(|line| {
            let percent = line.trim().strip_prefix("Cache is ")?;
            percent.strip_suffix("% full")?.parse().ok()
        });
        Some(Self {
            size: Bytes::from_bytes(value("cache size")?),
            full: full?,
            classes: value("# ROMClasses")?,
            aot_methods: value("# AOT Methods")?,
        })
    }

    /// The size to make it anew with: what is full of the first one, at least 1 MiB.
    /// Source: Open Liberty, populate_scc.sh: `max(1, int(size * full / 100 + 0.5))` in MiB.
    pub fn trimmed(&self, first: Bytes) -> Bytes {
        let mib = first.as_bytes() >> 20;
        Bytes::from_mib(((mib * self.full + 50) / 100).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `-Xshareclasses:printStats` of a cache with two layers, from OpenJ9's own documentation
    /// (shrc_diag_util.md).
    const RECORDED: &str = include_str!("../../tests/data/cache/printStats-layer1.txt");

    #[test]
    fn recorded_statistics_give_the_trimmed_size() {
        let statistics = Statistics::parse(RECORDED).expect("statistics");
        assert_eq!(
            statistics,
            Statistics {
                size: Bytes::from_bytes(16_776_608),
                full: 9,
                classes: 510,
                aot_methods: 15,
            }
        );
        // 80 MiB, 9 % full: 7.2.
        assert_eq!(statistics.trimmed(FIRST_SIZE), Bytes::from_mib(7));
        let empty = Statistics {
            full: 0,
            ..statistics
        };
        assert_eq!(empty.trimmed(FIRST_SIZE), Bytes::from_mib(1));
        assert_eq!(
            Statistics::parse("JVMSHRC005E No shared class caches"),
            None
        );
    }

    #[test]
    fn only_names_that_a_jvm_gives_are_names() {
        assert!(is_file_name("C290M25F1A64P_loadline_G45L00"));
        for other in [
            "C290M25F1A64P_other_G45L00",
            "../C290P_loadline_G45L00",
            "C290P_loadline_G45/L00",
            "C290P_loadline_G45L00.manifest",
            "_loadline_",
        ] {
            assert!(!is_file_name(other), "{other}");
        }
    }

    #[test]
    fn the_steps_in_order() {
        let directory = Path::new("/opt/scc");
        let steps = [
            populate(directory, FIRST_SIZE).join(" "),
            print_statistics(directory),
            destroy(directory),
            populate(directory, Bytes::from_mib(7)).join(" "),
            attach(directory).join(" "),
        ];
        insta::assert_snapshot!(steps.join("\n"), @"
        -Xshareclasses:name=loadline,cacheDir=/opt/scc -Xscmx80m -XX:+IProfileDuringStartupPhase
        -Xshareclasses:name=loadline,cacheDir=/opt/scc,printStats
        -Xshareclasses:name=loadline,cacheDir=/opt/scc,destroyAll
        -Xshareclasses:name=loadline,cacheDir=/opt/scc -Xscmx7m -XX:+IProfileDuringStartupPhase
        -Xshareclasses:name=loadline,cacheDir=/opt/scc,readonly,nonfatal
        ");
    }
}
