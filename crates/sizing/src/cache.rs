//! The purpose of a start-up cache: the manifest next to it, and mismatches with a start.
//!
//! A JVM that rejects its cache starts without it silently, and a damaged cache can abort it. Owns
//! the manifest (text, `key value` lines), the comparison with a start, and the checksum. Never
//! reads a file. Facts, measured on JDK 17.0.15 and 25.0.3: another build, class path, oops or
//! headers reject the whole cache; another collector loses only archived heap objects, except for
//! ZGC, which has no compressed oops; noise in an archive (200 KB on 17, 1 MiB on 25) ended the JVM
//! by SIGABRT.

pub mod shared;

use std::fmt::{self, Write as _};
use std::str::FromStr;

use crate::JavaVersion;
use crate::options::words::has_word;

pub use shared::SharedCacheInfo;

const HEADING: &str = "loadline-cache 1";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheKind {
    /// Application class data sharing: a dynamic archive over the JDK's own (JDK 13 and later).
    AppCds,
    /// The AOT cache of JEP 483, 514 and 515: linked classes, heap objects, profiles.
    Aot,
    /// The shared class cache of OpenJ9: classes and compiled code.
    Scc,
}

impl CacheKind {
    pub fn kind_name(self) -> &'static str {
        match self {
            Self::AppCds => "appcds",
            Self::Aot => "aot",
            Self::Scc => "scc",
        }
    }

    pub fn extension(self) -> &'static str {
        match self {
            Self::AppCds => "jsa",
            Self::Aot => "aot",
            Self::Scc => "scc",
        }
    }
}

impl fmt::Display for CacheKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.kind_name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKind(String);

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a cache: write appcds, aot or scc", self.0)
    }
}

impl std::error::Error for UnknownKind {}

impl FromStr for CacheKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        [Self::AppCds, Self::Aot, Self::Scc]
            .into_iter()
            .find(|kind| kind.kind_name() == text)
            .ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassPathFile {
    /// Its path below the directory of the first one where it lies there, else absolute.
    pub path: String,
    pub size: u64,
    /// Its time of modification, seconds since 1970-01-01: HotSpot compares it too, and image
    /// layers keep whole seconds.
    pub modified: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheManifest {
    pub kind: CacheKind,
    /// The build of the JDK: `JAVA_RUNTIME_VERSION` of its release file.
    pub build: String,
    pub collector: String,
    pub compressed_oops: bool,
    /// Whether object headers were compact (JEP 519).
    pub compact_headers: bool,
    pub size: u64,
    pub checksum: u64,
    /// Features of the CPU that made it, as [`cpu_features`] reads them; empty is not known.
    pub cpu: Vec<String>,
    pub class_path: Vec<ClassPathFile>,
    /// What a shared class cache has besides; `None` of other kinds, and in manifests from before it
    /// was kept.
    pub shared: Option<SharedCacheInfo>,
}

impl CacheManifest {
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEADING}\nkind {}\nbuild {}\n", self.kind, self.build);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "collector {}", self.collector);
        let _ = writeln!(text, "compressed-oops {}", self.compressed_oops);
        let _ = writeln!(text, "compact-headers {}", self.compact_headers);
        let _ = writeln!(text, "size {}", self.size);
        let _ = writeln!(text, "checksum {:016x}", self.checksum);
        if !self.cpu.is_empty() {
            let _ = writeln!(text, "cpu {}", self.cpu.join(" "));
        }
        if let Some(shared) = &self.shared {
            shared.write(&mut text);
        }
        for file in &self.class_path {
            let _ = writeln!(text, "file {} {} {}", file.size, file.modified, file.path);
        }
        text
    }

    pub fn parse_manifest(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != HEADING {
            return None;
        }
        let pairs: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(' ')).collect();
        let value = |key: &str| pairs.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
        let files = pairs.iter().filter(|(key, _)| *key == "file");
        Some(Self {
            kind: value("kind")?.parse().ok()?,
            build: value("build")?.to_owned(),
            collector: value("collector")?.to_owned(),
            compressed_oops: value("compressed-oops")?.parse().ok()?,
            compact_headers: value("compact-headers")?.parse().ok()?,
            size: value("size")?.parse().ok()?,
            checksum: u64::from_str_radix(value("checksum")?, 16).ok()?,
            // Manifests from before it was kept have none.
            cpu: value("cpu").map_or_else(Vec::new, split_words),
            class_path: files
                .map(|(_, text)| parse_class_path_file(text))
                .collect::<Option<_>>()?,
            shared: SharedCacheInfo::read(&pairs)?,
        })
    }
}

fn split_words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn parse_class_path_file(text: &str) -> Option<ClassPathFile> {
    let mut words = text.splitn(3, ' ');
    Some(ClassPathFile {
        size: words.next()?.parse().ok()?,
        modified: words.next()?.parse().ok()?,
        path: words.next()?.to_owned(),
    })
}

/// What a start has, to be compared with a manifest. `None` is not known and not compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartConditions {
    pub is_z: Option<bool>,
    pub collector: Option<String>,
    pub compressed_oops: Option<bool>,
    pub compact_headers: Option<bool>,
    /// Feature release of the JDK: from 26 on a cache fits every collector (JEP 516).
    pub feature: u32,
    pub cpu: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheMismatch {
    Build {
        made: String,
        now: String,
    },
    /// ZGC, or a heap without compressed references.
    Oops {
        made: bool,
        made_with: String,
        now_with: Option<String>,
    },
    Cpu {
        missing: Vec<String>,
    },
    /// `UseCompactObjectHeaders` differs.
    Headers {
        made: bool,
    },
    ClassPath {
        path: String,
        what: &'static str,
    },
    Damaged {
        what: &'static str,
    },
    /// A layer below it differs from the original one.
    Layer {
        name: String,
        what: &'static str,
    },
    /// It has moved, and has layers below it.
    Directory {
        made: String,
    },
}

impl fmt::Display for CacheMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build { made, now } => {
                write!(
                    f,
                    "it was made by another build of the JDK ({made}, this is {now})"
                )
            }
            Self::Oops {
                made,
                made_with,
                now_with,
            } => {
                let state = |on: bool| if on { "compressed" } else { "uncompressed" };
                write!(
                    f,
                    "it was made with {made_with} and {} references, this start has {} ones",
                    state(*made),
                    state(!made)
                )?;
                match now_with {
                    Some(name) => write!(f, " ({name})"),
                    None => Ok(()),
                }
            }
            Self::Cpu { missing } => write!(
                f,
                "it was made on a CPU with {}, which this one lacks, and could end the JVM by SIGILL",
                missing.join(" ")
            ),
            Self::Headers { made: true } => {
                f.write_str("it was made with -XX:+UseCompactObjectHeaders, this start is without")
            }
            Self::Headers { made: false } => {
                f.write_str("it was made without -XX:+UseCompactObjectHeaders, this start is with")
            }
            Self::ClassPath { path, what } => write!(f, "the class path changed: {path} {what}"),
            Self::Damaged { what } => write!(f, "the file is damaged: {what}"),
            Self::Layer { name, what } => write!(f, "the layer below it, {name}, {what}"),
            Self::Directory { made } => write!(
                f,
                "it was made for the directory {made}, and a layer is of no use in another"
            ),
        }
    }
}

impl CacheManifest {
    pub fn mismatch(&self, build: &str, start: &StartConditions) -> Option<CacheMismatch> {
        if self.build != build {
            return Some(CacheMismatch::Build {
                made: self.build.clone(),
                now: build.to_owned(),
            });
        }
        if let Some(missing) = self.missing(start) {
            return Some(CacheMismatch::Cpu { missing });
        }
        let any_collector = start.feature >= 26 && self.kind == CacheKind::Aot;
        let oops = match start.is_z {
            Some(true) => Some(false),
            _ => start.compressed_oops,
        };
        if !any_collector && oops.is_some_and(|oops| oops != self.compressed_oops) {
            return Some(CacheMismatch::Oops {
                made: self.compressed_oops,
                made_with: self.collector.clone(),
                now_with: start.collector.clone(),
            });
        }
        let headers = start.compact_headers;
        headers
            .filter(|now| *now != self.compact_headers)
            .map(|_| CacheMismatch::Headers {
                made: self.compact_headers,
            })
    }

    /// Features of the CPU that the machine code of an AOT cache may use and this one has not; an
    /// archive of classes has no machine code.
    fn missing(&self, start: &StartConditions) -> Option<Vec<String>> {
        let now = start.cpu.as_ref().filter(|_| self.kind == CacheKind::Aot)?;
        let missing = self.cpu.iter().filter(|feature| !now.contains(feature));
        let missing: Vec<String> = missing.cloned().collect();
        (!missing.is_empty()).then_some(missing)
    }

    /// The loss when the cache is used: archived heap objects need the collector they were written
    /// with, or are loaded one by one.
    pub fn loss(&self, start: &StartConditions) -> Option<String> {
        let now = start.collector.as_deref()?;
        (now != self.collector).then(|| {
            format!(
                "it was made with {}, this start has {now}: its classes are used, compiled stubs are not",
                self.collector
            )
        })
    }
}

/// Features of an x86 CPU that HotSpot makes code for, as the kernel names them (vm_version_x86.hpp,
/// `CPU_FEATURE_FLAGS`; arch/x86/include/asm/cpufeatures.h). What else a kernel lists says nothing
/// about the code: another kernel lists other words for the same CPU.
const X86: &str = "3dnowprefetch abm adx aes apx avx avx10 avx2 avx512_bitalg avx512_fp16 avx512_vbmi2 \
    avx512_vnni avx512_vpopcntdq avx512bw avx512cd avx512dq avx512er avx512f avx512ifma avx512pf \
    avx512vbmi avx512vl avx_ifma bmi1 bmi2 clflush clflushopt clwb cmov cx16 cx8 erms f16c fma \
    fsrm fxsr gfni ht mmx movbe nonstop_tsc ospke pclmulqdq pku pni popcnt rdpid rdtscp \
    serialize sha512 sha_ni sse sse2 sse4_1 sse4_2 sse4a ssse3 vaes vpclmulqdq user_shstk";

/// The CPU features that matter to compiled code, from the first CPU in the text of /proc/cpuinfo:
/// on x86 the features that HotSpot knows, elsewhere (`Features`) all. Empty without a list of
/// features.
pub fn cpu_features(cpuinfo: &str) -> Vec<String> {
    let line = |key: &str| {
        let mut pairs = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        pairs
            .find(|(name, _)| name.trim() == key)
            .map(|(_, value)| value)
    };
    let mut features = match line("flags") {
        Some(flags) => split_words(flags)
            .into_iter()
            .filter(|f| has_word(X86, f))
            .collect(),
        None => line("Features").map_or_else(Vec::new, split_words),
    };
    features.sort();
    features.dedup();
    features
}

/// Options that keep machine code out of an AOT cache of a JDK which does not check the CPU, for
/// training and use alike: from 25 on, until 25.0.5 (JDK-8388703, adoptium-support#1507). Without
/// them such a cache can end the JVM by SIGILL on another CPU.
pub fn workaround(kind: CacheKind, jdk: JavaVersion) -> &'static [&'static str] {
    let is_affected = (JavaVersion::from_feature(25)..JavaVersion::new(25, 5)).contains(&jdk)
        || jdk.feature == 26;
    if kind == CacheKind::Aot && is_affected {
        &["-XX:+UnlockDiagnosticVMOptions", "-XX:-AOTAdapterCaching"]
    } else {
        &[]
    }
}

/// A checksum against damage, not malice: four lanes of multiply and rotate over words of eight
/// bytes, several GB a second, because every start waits for it.
#[derive(Debug, Clone)]
pub struct Checksum {
    lanes: [u64; 4],
    length: u64,
    rest: Vec<u8>,
}

/// Odd, so that multiplication loses nothing; the digits are those of the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

const BLOCK: usize = 32;

impl Default for Checksum {
    fn default() -> Self {
        Self {
            lanes: [1, 2, 3, 4],
            length: 0,
            rest: Vec::new(),
        }
    }
}

impl Checksum {
    /// Adds bytes; how they are cut does not matter.
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        let mut bytes = bytes;
        if !self.rest.is_empty() {
            let take = bytes.len().min(BLOCK - self.rest.len());
            let (head, tail) = bytes.split_at(take);
            self.rest.extend_from_slice(head);
            bytes = tail;
            if self.rest.len() < BLOCK {
                return;
            }
            let block = std::mem::take(&mut self.rest);
            self.blocks(&block);
        }
        let whole = bytes.len() - bytes.len() % BLOCK;
        self.blocks(&bytes[..whole]);
        self.rest.extend_from_slice(&bytes[whole..]);
    }

    fn blocks(&mut self, bytes: &[u8]) {
        let mut lanes = self.lanes;
        for block in bytes.chunks_exact(BLOCK) {
            for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(8)) {
                let word = word.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
                *lane = (*lane ^ word).wrapping_mul(FACTOR).rotate_left(29);
            }
        }
        self.lanes = lanes;
    }

    pub fn final_checksum(mut self) -> u64 {
        let mut last = std::mem::take(&mut self.rest);
        last.resize(BLOCK, 0);
        self.blocks(&last);
        self.lanes.iter().fold(self.length, |sum, lane| {
            (sum ^ lane).wrapping_mul(FACTOR).rotate_left(31)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> CacheManifest {
        let file = |path: &str| ClassPathFile {
            path: path.to_owned(),
            size: 12,
            modified: 1_767_225_600,
        };
        CacheManifest {
            kind: CacheKind::Aot,
            build: "25.0.3+9-LTS".to_owned(),
            collector: "G1".to_owned(),
            compressed_oops: true,
            compact_headers: false,
            size: 30_000_000,
            checksum: 0xab,
            cpu: vec!["avx2".to_owned(), "sse4_2".to_owned()],
            class_path: vec![file("app.jar"), file("lib/a b.jar")],
            shared: None,
        }
    }

    fn start() -> StartConditions {
        StartConditions {
            is_z: Some(false),
            collector: Some("G1".to_owned()),
            compressed_oops: Some(true),
            compact_headers: Some(false),
            feature: 25,
            cpu: Some(vec![
                "avx2".to_owned(),
                "avx512f".to_owned(),
                "sse4_2".to_owned(),
            ]),
        }
    }

    #[test]
    fn a_cpu_that_lacks_what_the_code_may_use_is_named() {
        let old = StartConditions {
            cpu: Some(vec!["sse4_2".to_owned()]),
            ..start()
        };
        let said =
            |made: &CacheManifest| made.mismatch("25.0.3+9-LTS", &old).map(|m| m.to_string());
        assert_eq!(
            said(&manifest()).unwrap(),
            "it was made on a CPU with avx2, which this one lacks, and could end the JVM by SIGILL"
        );
        let classes = CacheManifest {
            kind: CacheKind::AppCds,
            ..manifest()
        };
        assert_eq!(said(&classes), None, "classes are no machine code");
        let before = manifest().to_text().replace("cpu avx2 sse4_2\n", "");
        let before = CacheManifest::parse_manifest(&before).unwrap();
        assert_eq!(said(&before), None, "unknown");
    }

    #[test]
    fn features_are_those_that_code_is_made_for() {
        let x86 = "processor\t: 0\nflags\t\t: fpu sse2 avx2 hypervisor md_clear\nbugs\t: x\n\nprocessor\t: 1\nflags : none\n";
        assert_eq!(cpu_features(x86), ["avx2", "sse2"]);
        assert_eq!(
            cpu_features("Features\t: fp asimd lse\n"),
            ["asimd", "fp", "lse"]
        );
        assert!(cpu_features("").is_empty());
    }

    #[test]
    fn only_affected_builds_have_the_workaround() {
        let count = |kind, jdk: &str| workaround(kind, jdk.parse().unwrap()).len();
        assert_eq!(count(CacheKind::Aot, "25"), 2);
        assert_eq!(count(CacheKind::Aot, "25.0.4"), 2);
        assert_eq!(count(CacheKind::Aot, "26"), 2);
        assert_eq!(count(CacheKind::Aot, "25.0.5"), 0);
        assert_eq!(count(CacheKind::Aot, "27"), 0);
        assert_eq!(count(CacheKind::AppCds, "25"), 0);
    }

    #[test]
    fn the_text_says_all_of_it() {
        let text = manifest().to_text();
        assert!(text.contains("checksum 00000000000000ab\n"), "{text}");
        assert!(text.ends_with("file 12 1767225600 lib/a b.jar\n"), "{text}");
        assert_eq!(CacheManifest::parse_manifest(&text), Some(manifest()));
    }

    #[test]
    fn limits_and_layers_of_a_shared_class_cache_are_said() {
        let layer = shared::CacheLayer {
            name: "C290M25F1A64P_loadline_G45L00".to_owned(),
            size: 7,
            checksum: 0xcd,
        };
        let made = CacheManifest {
            kind: CacheKind::Scc,
            shared: Some(SharedCacheInfo {
                hard_limit: 8 << 20,
                soft_limit: 7 << 20,
                directory: Some("/opt/a b".to_owned()),
                below: vec![layer],
            }),
            ..manifest()
        };
        let text = made.to_text();
        for line in [
            "hard-limit 8388608\n",
            "soft-limit 7340032\n",
            "directory /opt/a b\n",
            "layer 7 00000000000000cd C290M25F1A64P_loadline_G45L00\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert_eq!(CacheManifest::parse_manifest(&text), Some(made));
        for other in [
            text.replace("soft-limit", "limit"),
            text.replace("layer 7", "layer seven"),
            text.replace("C290M25F1A64P_", "../"),
        ] {
            assert_eq!(CacheManifest::parse_manifest(&other), None, "{other}");
        }
    }

    #[test]
    fn other_texts_are_no_manifest() {
        let text = manifest().to_text();
        for other in [
            "",
            "loadline-cache 2\n",
            &text.replace("size", "sise"),
            &text.replace("kind aot", "kind jit"),
            &text.replace("file 12", "file twelve"),
        ] {
            assert_eq!(CacheManifest::parse_manifest(other), None, "{other}");
        }
    }

    #[test]
    fn what_a_jvm_would_reject_silently_is_named() {
        let made = manifest();
        let reason = |build: &str, start: &StartConditions| {
            made.mismatch(build, start).map(|m| m.to_string())
        };
        assert_eq!(reason("25.0.3+9-LTS", &start()), None);
        let said = reason("25.0.2+8", &start()).unwrap();
        assert!(said.contains("25.0.3+9-LTS, this is 25.0.2+8"), "{said}");
        let z = StartConditions {
            is_z: Some(true),
            collector: Some("ZGC".to_owned()),
            ..start()
        };
        let said = reason("25.0.3+9-LTS", &z).unwrap();
        assert_eq!(
            said,
            "it was made with G1 and compressed references, this start has uncompressed ones (ZGC)"
        );
        let compact = StartConditions {
            compact_headers: Some(true),
            ..start()
        };
        assert!(
            reason("25.0.3+9-LTS", &compact)
                .unwrap()
                .contains("without")
        );
        // JEP 516: the objects of an AOT cache fit every collector.
        assert_eq!(
            reason("25.0.3+9-LTS", &StartConditions { feature: 26, ..z }),
            None
        );
        // Unknown values are left to the JVM.
        assert_eq!(reason("25.0.3+9-LTS", &StartConditions::default()), None);
    }

    #[test]
    fn another_collector_is_a_loss_and_no_mismatch() {
        let serial = StartConditions {
            collector: Some("Serial".to_owned()),
            ..start()
        };
        assert_eq!(manifest().mismatch("25.0.3+9-LTS", &serial), None);
        assert!(manifest().loss(&serial).unwrap().contains("Serial"));
        assert_eq!(manifest().loss(&start()), None);
    }

    #[test]
    fn a_checksum_finds_every_flipped_bit_and_does_not_care_for_cuts() {
        let bytes: Vec<u8> = (0..1000_u32).map(|n| (n * 7 % 251) as u8).collect();
        let sum = |parts: &[&[u8]]| {
            let mut sum = Checksum::default();
            parts.iter().for_each(|part| sum.add_bytes(part));
            sum.final_checksum()
        };
        let whole = sum(&[&bytes]);
        for cut in 0..100 {
            let (a, b) = bytes.split_at(cut);
            assert_eq!(sum(&[a, b]), whole, "cut at {cut}");
        }
        for bit in 0..8000 {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(sum(&[&other]), whole, "bit {bit}");
        }
        assert_ne!(sum(&[&bytes[..999]]), whole);
        assert_ne!(sum(&[&[0; 32]]), sum(&[&[0; 31]]));
    }
}
