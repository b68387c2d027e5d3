//! OpenJ9's shared class cache: the options of each step, and what its statistics say.
//!
//! Owns texts only: populate with room, read how full it is, make it anew at that size, populate
//! again, use it read-only. The steps are those of Open Liberty's `populate_scc.sh` \[openj9\]; the
//! sizes are [`Statistics::limits`]'s. Tried on OpenJ9 25: it names the file itself, makes its
//! directory for its own user alone, and leaves dumps behind where it meets a damaged cache.

use std::path::{Path, PathBuf};

use loadline_sizing::Bytes;
use loadline_sizing::cache::shared::{self, FileName, NAME};

/// Size of the cache that is filled first.
pub const FIRST_SIZE: Bytes = Bytes::from_mib(80);

/// How much a cache may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The size of its file (`-XX:SharedCacheHardLimit`).
    pub hard: Bytes,
    /// How much of it is filled (`-Xscmx` beside the other).
    pub soft: Bytes,
}

impl Limits {
    /// Room for a first filling: what it holds is not known.
    pub fn first(size: Bytes) -> Self {
        Self {
            hard: size,
            soft: size,
        }
    }
}

/// A cache as options name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// The directory of its layers.
    pub directory: PathBuf,
}

impl Place {
    /// One of loadline's.
    pub fn own(directory: &Path) -> Self {
        Self {
            name: NAME.to_owned(),
            directory: directory.to_owned(),
        }
    }

    /// That of a file, by the name that a JVM gave it.
    pub fn of(file: &Path) -> Self {
        let name = file.file_name().and_then(|name| name.to_str());
        let name = name
            .and_then(FileName::parse)
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

/// Options of a run that fills a cache, at this size; or a new layer above those that are there.
pub fn populate(place: &Place, limits: Limits, is_layer: bool) -> Vec<String> {
    let layer = if is_layer { ",createLayer" } else { "" };
    vec![
        place.option(layer),
        format!("-XX:SharedCacheHardLimit={}", limits.hard.jvm()),
        format!("-Xscmx{}", limits.soft.jvm()),
        "-XX:+IProfileDuringStartupPhase".to_owned(),
    ]
}

/// Options of a start that uses it and changes nothing in it; it starts without one, too.
pub fn attach(place: &Place) -> Vec<String> {
    vec![place.option(",readonly,nonfatal")]
}

/// The same, and the JVM says of each class whether it was there.
pub fn witness(place: &Place) -> Vec<String> {
    vec![place.option(",readonly,nonfatal,verboseIO")]
}

/// Option of a JVM that prints the statistics and ends.
pub fn print_statistics(place: &Place) -> String {
    place.option(",printStats")
}

/// Option of a JVM that removes the cache and ends.
pub fn destroy(place: &Place) -> String {
    place.option(",destroyAll")
}

/// The cache that options name.
pub fn named(options: &str) -> Option<Place> {
    let (name, directory) = shared::named(options)?;
    Some(Place {
        name: name.to_owned(),
        directory: PathBuf::from(directory),
    })
}

/// What `printStats` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// The uppermost layer.
    pub layer: u64,
    /// Size of that layer.
    pub size: Bytes,
    /// What is free of it.
    pub free: Bytes,
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
            layer: value("cache layer").unwrap_or(0),
            size: Bytes::from_bytes(value("cache size")?),
            free: Bytes::from_bytes(value("free bytes")?),
            full: full?,
            classes: value("# ROMClasses")?,
            aot_methods: value("# AOT Methods")?,
        })
    }

    /// The limits to make it anew with: what it holds, in whole MiB, and above that a sixteenth for
    /// what a second filling compiles otherwise than the first.
    pub fn limits(&self) -> Limits {
        let held = self.size.as_bytes().saturating_sub(self.free.as_bytes());
        let whole = |bytes: u64| Bytes::from_mib(bytes.div_ceil(1 << 20).max(1));
        Limits {
            hard: whole(held + held / 16),
            soft: whole(held + held / 16),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `-Xshareclasses:printStats` of a cache with two layers, from OpenJ9's own documentation
    /// (shrc_diag_util.md).
    const RECORDED: &str = include_str!("../../tests/data/cache/printStats-layer1.txt");

    #[test]
    fn recorded_statistics_give_the_limits_of_what_is_held() {
        let statistics = Statistics::parse(RECORDED).expect("statistics");
        assert_eq!(
            statistics,
            Statistics {
                layer: 1,
                size: Bytes::from_bytes(16_776_608),
                free: Bytes::from_bytes(15_228_964),
                full: 9,
                classes: 510,
                aot_methods: 15,
            }
        );
        // It holds 1.48 MiB.
        let limits = statistics.limits();
        assert_eq!(limits.hard, Bytes::from_mib(2));
        let empty = Statistics {
            free: statistics.size,
            ..statistics
        };
        assert_eq!(empty.limits().hard, Bytes::from_mib(1));
        assert_eq!(
            Statistics::parse("JVMSHRC005E No shared class caches"),
            None
        );
    }

    #[test]
    fn the_steps_in_order() {
        let place = Place::own(Path::new("/opt/scc"));
        let limits = Limits {
            hard: Bytes::from_mib(8),
            soft: Bytes::from_mib(7),
        };
        let file = Path::new("/opt/java/.scc/C290M25F1A64P_openj9_system_scc_G45L01");
        let steps = [
            populate(&place, Limits::first(FIRST_SIZE), false).join(" "),
            print_statistics(&place),
            destroy(&place),
            populate(&place, limits, true).join(" "),
            attach(&Place::of(file)).join(" "),
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
