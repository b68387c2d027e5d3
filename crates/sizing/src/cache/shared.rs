//! The additional manifest lines of an OpenJ9 shared class cache: its limits, the layers below it,
//! and the directory that these require.
//!
//! Owns these lines, and OpenJ9's file names. Never reads a file. Facts: OpenJ9 documentation
//! (-Xscmx, -XX:SharedCacheHardLimit, -Xshareclasses), its OSCache.cpp: a layer records path,
//! length and time of the file below it, so it is useless in another directory.

use std::fmt::Write as _;

pub const NAME: &str = "loadline";

/// Where an image has a shared class cache, unless it lies above another.
pub const IN_IMAGE: &str = "/opt/scc";

/// Most bytes of a name that is taken: it becomes a part of options and of file names.
const LONGEST: usize = 64;

/// What a JVM calls the file of a cache, `C290M25F1A64P_loadline_G45L00`, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileName<'a> {
    pub version: &'a str,
    pub name: &'a str,
    pub generation: u32,
    pub layer: u32,
}

impl<'a> FileName<'a> {
    /// Reads a name; `None` for what no JVM gives to a cache that is kept in a file. Nothing else of
    /// what an application or an image has becomes a part of options.
    pub fn parse_name(text: &'a str) -> Option<Self> {
        let (version, rest) = text.split_once('_')?;
        let (name, ending) = rest.rsplit_once('_')?;
        let ending = ending.strip_prefix('G')?;
        // Before there were layers, there was one.
        let (generation, layer) = ending.split_once('L').unwrap_or((ending, "0"));
        let is_plain = |part: &str, more: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
            !part.is_empty() && part.chars().all(fits)
        };
        let number = |part: &str| -> Option<u32> {
            let is_number = part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| part.parse().ok())?
        };
        let is_version = version.starts_with('C') && version.ends_with('P') && version.len() < 40;
        let is_name = is_plain(name, "_-") && name.len() <= LONGEST;
        (is_version && is_plain(version, "") && is_name).then_some(Self {
            version,
            name,
            generation: number(generation)?,
            layer: number(layer)?,
        })
    }

    /// The feature release of the JVM that made it, `25` of `C290M25F1A64P`; `None` where it has none.
    pub fn feature_release(&self) -> Option<u32> {
        let (_, rest) = self.version.split_once('M')?;
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        rest[..end].parse().ok()
    }

    pub fn is_layer_of(&self, other: &FileName<'_>) -> bool {
        let of = |file: &FileName<'a>| (file.version, file.name, file.generation);
        of(self) == (other.version, other.name, other.generation)
    }
}

/// Name and directory of the cache that options name, as the last `-Xshareclasses:` has it: `None`
/// where none is named, or not with its directory.
pub fn named_cache(options: &str) -> Option<(&str, &str)> {
    let words = options.split_whitespace();
    let mut given = words.filter_map(|word| word.strip_prefix("-Xshareclasses:"));
    let parts = given.next_back()?.split(',');
    let value = |key: &str| {
        let mut values = parts.clone().filter_map(|part| part.strip_prefix(key));
        values.next_back()
    };
    value("name=").zip(value("cacheDir="))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCacheInfo {
    /// Its hard limit (`-XX:SharedCacheHardLimit`), bytes: how large the file is.
    pub hard_limit: u64,
    /// Its soft limit (`-Xscmx`), bytes: the part that may be filled.
    pub soft_limit: u64,
    /// The only directory in which it is of use; `None` where nothing is below it.
    pub directory: Option<String>,
    pub below: Vec<CacheLayer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheLayer {
    pub name: String,
    pub size: u64,
    pub checksum: u64,
}

impl SharedCacheInfo {
    pub(super) fn write(&self, text: &mut String) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "hard-limit {}", self.hard_limit);
        let _ = writeln!(text, "soft-limit {}", self.soft_limit);
        if let Some(directory) = &self.directory {
            let _ = writeln!(text, "directory {directory}");
        }
        for layer in &self.below {
            let (size, checksum) = (layer.size, layer.checksum);
            let _ = writeln!(text, "layer {size} {checksum:016x} {}", layer.name);
        }
    }

    /// Reads the lines of a manifest; inner `None` without such lines, outer `None` for an
    /// unreadable one.
    pub(super) fn read(pairs: &[(&str, &str)]) -> Option<Option<Self>> {
        let all = |key: &'static str| {
            let of = pairs.iter().filter(move |(k, _)| *k == key);
            of.map(|(_, value)| *value)
        };
        let Some(hard) = all("hard-limit").next() else {
            return Some(None);
        };
        Some(Some(Self {
            hard_limit: hard.parse().ok()?,
            soft_limit: all("soft-limit").next()?.parse().ok()?,
            directory: all("directory").next().map(str::to_owned),
            below: all("layer").map(parse_layer).collect::<Option<_>>()?,
        }))
    }
}

fn parse_layer(text: &str) -> Option<CacheLayer> {
    let mut words = text.splitn(3, ' ');
    let layer = CacheLayer {
        size: words.next()?.parse().ok()?,
        checksum: u64::from_str_radix(words.next()?, 16).ok()?,
        name: words.next()?.to_owned(),
    };
    FileName::parse_name(&layer.name).is_some().then_some(layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_a_jvm_gives_are_names() {
        let parse = |text| FileName::parse_name(text).map(|f| (f.name, f.generation, f.layer));
        assert_eq!(
            parse("C290M25F1A64P_loadline_G45L00"),
            Some(("loadline", 45, 0))
        );
        assert_eq!(
            parse("C290M11F1A64P_openj9_system_scc_G41L01"),
            Some(("openj9_system_scc", 41, 1))
        );
        assert_eq!(parse("C290M8F1A64P_a_G37"), Some(("a", 37, 0)));
        let feature = |text| FileName::parse_name(text).and_then(|file| file.feature_release());
        assert_eq!(feature("C290M25F1A64P_loadline_G45L00"), Some(25));
        assert_eq!(feature("C290M8F1A64P_a_G37"), Some(8));
        assert_eq!(feature("C290P_a_G37"), None);
        let long = format!("C290P_{}_G45L00", "a".repeat(65));
        for other in [
            "../C290P_loadline_G45L00",
            "C290P_loadline_G45/L00",
            "C290M25F1A64P_loadline_G45L00.manifest",
            "C290P_load,line_G45L00",
            "C290P__G45L00",
            "C290P_loadline_45L00",
            "C290P_loadline_G45L",
            "C290P_loadline_G45L-1",
            "C290_loadline_G45L00",
            "_loadline_",
            "",
            long.as_str(),
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_cache_that_options_name_is_that_of_the_last() {
        let semeru = "-XX:+PortableSharedCache -Xshareclasses:name=openj9_system_scc,cacheDir=/opt/java/.scc,readonly,nonFatal";
        assert_eq!(
            named_cache(semeru),
            Some(("openj9_system_scc", "/opt/java/.scc"))
        );
        let last = format!("{semeru} -Xshareclasses:cacheDir=/a,name=b");
        assert_eq!(named_cache(&last), Some(("b", "/a")));
        for other in ["", "-Xmx1g", "-Xshareclasses:none", "-Xshareclasses:name=a"] {
            assert_eq!(named_cache(other), None, "{other}");
        }
        assert_eq!(named_cache(&format!("{semeru} -Xshareclasses:none")), None);
    }

    #[test]
    fn layers_of_one_cache_differ_in_nothing_else() {
        let of = |text| FileName::parse_name(text).unwrap();
        let base = of("C290M25F1A64P_loadline_G45L00");
        assert!(of("C290M25F1A64P_loadline_G45L01").is_layer_of(&base));
        for other in [
            "C290M21F1A64P_loadline_G45L01",
            "C290M25F1A64P_other_G45L01",
            "C290M25F1A64P_loadline_G44L01",
        ] {
            assert!(!of(other).is_layer_of(&base), "{other}");
        }
    }
}
