//! OpenJ9's shared class cache: the options of each step, and its statistics.
//!
//! Owns texts only: populate with room, read how full it is, rebuild it at that size, populate
//! again, use it read-only. The steps are those of Open Liberty's `populate_scc.sh` \[openj9\]; the
//! sizes come from [`SharedCacheStatistics::rebuild_limits`]. Tried on OpenJ9 25: it names the file
//! itself, makes its directory for its own user alone, and leaves dumps behind when it meets a
//! damaged cache.

use std::path::{Path, PathBuf};

use loadline_sizing::Bytes;
use loadline_sizing::cache::shared::{self, FileName, NAME};

pub const FIRST_SIZE: Bytes = Bytes::from_mib(80);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedCacheLimits {
    /// The size of its file (`-XX:SharedCacheHardLimit`).
    pub hard: Bytes,
    /// The part that may be filled (`-Xscmx`).
    pub soft: Bytes,
}

impl SharedCacheLimits {
    pub fn for_first_filling(size: Bytes) -> Self {
        Self {
            hard: size,
            soft: size,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCachePlace {
    pub name: String,
    pub directory: PathBuf,
}

impl SharedCachePlace {
    pub fn in_own_directory(directory: &Path) -> Self {
        Self {
            name: NAME.to_owned(),
            directory: directory.to_owned(),
        }
    }

    pub fn from_cache_file(file: &Path) -> Self {
        let name = file.file_name().and_then(|name| name.to_str());
        let name = name
            .and_then(FileName::parse_name)
            .map_or(NAME, |file| file.name);
        Self {
            name: name.to_owned(),
            directory: file.parent().unwrap_or(file).to_owned(),
        }
    }

    fn option(&self, more: &str) -> String {
        let (name, directory) = (&self.name, self.directory.display());
        format!("-Xshareclasses:name={name},cacheDir={directory}{more}")
    }
}

/// Options of a run that fills a cache, at this size; or a new layer above the existing ones.
pub fn populate_options(
    place: &SharedCachePlace,
    limits: SharedCacheLimits,
    is_layer: bool,
) -> Vec<String> {
    let layer = if is_layer { ",createLayer" } else { "" };
    vec![
        place.option(layer),
        format!("-XX:SharedCacheHardLimit={}", limits.hard.to_jvm_size()),
        format!("-Xscmx{}", limits.soft.to_jvm_size()),
        "-XX:+IProfileDuringStartupPhase".to_owned(),
    ]
}

/// Options of a start that uses it and changes nothing in it; it starts without one, too.
pub fn attach_options(place: &SharedCachePlace) -> Vec<String> {
    vec![place.option(",readonly,nonfatal")]
}

pub fn witness_options(place: &SharedCachePlace) -> Vec<String> {
    vec![place.option(",readonly,nonfatal,verboseIO")]
}

pub fn print_statistics(place: &SharedCachePlace) -> String {
    place.option(",printStats")
}

pub fn destroy_option(place: &SharedCachePlace) -> String {
    place.option(",destroyAll")
}

pub fn from_options(options: &str) -> Option<SharedCachePlace> {
    let (name, directory) = shared::named_cache(options)?;
    Some(SharedCachePlace {
        name: name.to_owned(),
        directory: PathBuf::from(directory),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedCacheStatistics {
    pub layer: u64,
    /// What that layer can hold: its soft limit, or its size without the part for line numbers.
    pub room: Bytes,
    pub held: Bytes,
    pub classes: u64,
}

impl SharedCacheStatistics {
    pub fn from_print_stats(text: &str) -> Option<Self> {
        let value = |name: &str| -> Option<u64> {
            let line = text.lines().find_map(|l| l.trim().strip_prefix(name))?;
            line.trim_start().strip_prefix('=')?.trim().parse().ok()
        };
        let size = value("cache size")?;
        // At most a twelfth, kept for line numbers; none of the figures counts it as free.
        let lines = value("Class debug area size").unwrap_or(0);
        let hard = size.saturating_sub(lines);
        let room = value("softmx bytes").map_or(hard, |soft| soft.min(hard));
        let held = room.saturating_sub(value("free bytes")?);
        Some(Self {
            layer: value("cache layer").unwrap_or(0),
            room: Bytes::from_bytes(room),
            held: Bytes::from_bytes(held),
            classes: value("# ROMClasses")?,
        })
    }

    pub fn full_percent(&self) -> u64 {
        self.held.as_bytes() * 100 / self.room.as_bytes().max(1)
    }

    /// The limits for the rebuild, in whole MiB: soft is the content plus a sixteenth for
    /// differences in the compilation of a second filling, hard is soft plus the part for line
    /// numbers. With the soft limit the JVM reports the data it could not store (`verbose`), with
    /// the hard limit alone only that it is full.
    pub fn rebuild_limits(&self) -> SharedCacheLimits {
        let held = self.held.as_bytes();
        let soft = Bytes::from_mib((held + held / 16).div_ceil(1 << 20).max(1));
        let with_lines = (soft.as_bytes() * 12).div_ceil(11);
        SharedCacheLimits {
            hard: Bytes::from_mib(with_lines.div_ceil(1 << 20)),
            soft,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `-Xshareclasses:printStats` of a cache with two layers, from OpenJ9's own documentation
    /// (shrc_diag_util.md).
    const RECORDED: &str = include_str!("../../tests/data/cache/printStats-layer1.txt");

    /// The same of the smallest workload on OpenJ9 25 (cf92035774), with a hard limit of 80 MiB and a
    /// soft one of 12.
    const SOFT: &str = include_str!("../../tests/data/cache/printStats-soft.txt");

    #[test]
    fn recorded_statistics_give_the_limits_of_what_is_held() {
        let statistics = SharedCacheStatistics::from_print_stats(RECORDED).expect("statistics");
        assert_eq!(
            statistics,
            SharedCacheStatistics {
                layer: 1,
                room: Bytes::from_bytes(15_445_408),
                held: Bytes::from_bytes(216_444),
                classes: 510,
            }
        );
        assert_eq!(statistics.full_percent(), 1);
        let limits = |statistics: SharedCacheStatistics| {
            let SharedCacheLimits { hard, soft } = statistics.rebuild_limits();
            (hard.as_mib(), soft.as_mib())
        };
        assert_eq!(limits(statistics), (2.0, 1.0));
        let soft = SharedCacheStatistics::from_print_stats(SOFT).expect("statistics");
        assert_eq!(soft.room, Bytes::from_mib(12));
        assert_eq!(soft.held, Bytes::from_bytes(3_633_478));
        assert_eq!((soft.full_percent(), limits(soft)), (28, (5.0, 4.0)));
        let none = Bytes::from_bytes(0);
        let empty = SharedCacheStatistics { held: none, ..soft };
        assert_eq!(limits(empty), (2.0, 1.0));
        assert_eq!(
            SharedCacheStatistics::from_print_stats("JVMSHRC005E No shared class caches"),
            None
        );
    }

    #[test]
    fn the_steps_in_order() {
        let place = SharedCachePlace::in_own_directory(Path::new("/opt/scc"));
        let limits = SharedCacheLimits {
            hard: Bytes::from_mib(8),
            soft: Bytes::from_mib(7),
        };
        let file = Path::new("/opt/java/.scc/C290M25F1A64P_openj9_system_scc_G45L01");
        let steps = [
            populate_options(
                &place,
                SharedCacheLimits::for_first_filling(FIRST_SIZE),
                false,
            )
            .join(" "),
            print_statistics(&place),
            destroy_option(&place),
            populate_options(&place, limits, true).join(" "),
            attach_options(&SharedCachePlace::from_cache_file(file)).join(" "),
        ];
        insta::assert_snapshot!(steps.join("\n"), @"
        -Xshareclasses:name=loadline,cacheDir=/opt/scc -XX:SharedCacheHardLimit=80m -Xscmx80m -XX:+IProfileDuringStartupPhase
        -Xshareclasses:name=loadline,cacheDir=/opt/scc,printStats
        -Xshareclasses:name=loadline,cacheDir=/opt/scc,destroyAll
        -Xshareclasses:name=loadline,cacheDir=/opt/scc,createLayer -XX:SharedCacheHardLimit=8m -Xscmx7m -XX:+IProfileDuringStartupPhase
        -Xshareclasses:name=openj9_system_scc,cacheDir=/opt/java/.scc,readonly,nonfatal
        ");
    }
}
