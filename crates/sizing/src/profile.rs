//! loadline's measurements of an application: a small text file that ships in the image.
//!
//! Owns the file's form (`name = value`, `#` comments) and nothing else. Every value is optional;
//! the defaults of [`crate::regions`] fill missing ones. Unknown names become notes so that an
//! older launcher accepts a newer profile.

use std::fmt::Write as _;

use crate::Bytes;
use crate::hotspot::CollectorKind;
use crate::jdk::{JavaVersion, Vm};
use crate::options::JvmOptionSet;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AppProfile {
    pub jdk: Option<JavaVersion>,
    pub vm: Vm,
    pub collector: Option<CollectorKind>,
    pub is_c1_only: Option<bool>,
    pub classes: Option<u64>,
    /// Metaspace committed, class space included (NMT "Class" and "Metaspace").
    pub metaspace: Option<Bytes>,
    pub code_cache: Option<Bytes>,
    pub threads: Option<u64>,
    pub thread_stack: Option<Bytes>,
    pub direct: Option<Bytes>,
    /// JIT and arenas (NMT "Compiler", "Arena Chunk", "Internal", "Symbol").
    pub jit: Option<Bytes>,
    pub cds: Option<Bytes>,
    /// Resident pages of other mapped files: the JVM's own code, libraries, jars.
    pub files: Option<Bytes>,
    pub agents: Option<Bytes>,
    /// Everything native that no other region names (smaps less NMT).
    pub malloc: Option<Bytes>,
    /// Everything outside the heap, including growth and file pages in use; replaces the regions.
    pub rest: Option<Bytes>,
    /// Heap in use after a full collection under load: the least heap that works at all.
    pub live_heap: Option<Bytes>,
    /// Options that were measured to help, as the JVM takes them.
    pub options: Vec<String>,
    pub notes: Vec<String>,
}

impl AppProfile {
    pub fn parse_profile(text: &str) -> Self {
        let mut profile = Self::default();
        for line in text.lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let is_understood = line
                .split_once('=')
                .is_some_and(|(name, value)| profile.set_value(name.trim(), value.trim()));
            if !is_understood {
                profile
                    .notes
                    .push(format!("profile line not understood: {line}"));
            }
        }
        profile
    }

    fn set_value(&mut self, name: &str, value: &str) -> bool {
        let size = value.parse::<Bytes>().ok();
        let count = value.parse::<u64>().ok();
        match name {
            "jdk" => self.jdk = value.parse().ok(),
            "vm" => self.vm = vm(value).unwrap_or_default(),
            "collector" => self.collector = parse_collector(value),
            "compiler" => self.is_c1_only = Some(value == "c1"),
            "classes" => self.classes = count,
            "metaspace" => self.metaspace = size,
            "code_cache" => self.code_cache = size,
            "threads" => self.threads = count,
            "thread_stack" => self.thread_stack = size,
            "direct" => self.direct = size,
            "jit" => self.jit = size,
            "cds" => self.cds = size,
            "files" => self.files = size,
            "agents" => self.agents = size,
            "malloc" => self.malloc = size,
            "rest" => self.rest = size,
            "live_heap" => self.live_heap = size,
            "option" if value.starts_with('-') => self.options.push(value.to_owned()),
            _ => return false,
        }
        match name {
            "jdk" => self.jdk.is_some(),
            "vm" => vm(value).is_some(),
            "collector" => self.collector.is_some(),
            "compiler" => matches!(value, "c1" | "full"),
            "classes" | "threads" => count.is_some(),
            "option" => true,
            _ => size.is_some(),
        }
    }

    pub fn to_file_text(&self) -> String {
        let mut text =
            String::from("# loadline profile: measured, see `loadline-launch --explain`\n");
        let mut line = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{name} = {value}");
            }
        };
        line("jdk", self.jdk.map(|v| v.to_string()));
        // A launcher that knows no such line reads HotSpot's profiles only.
        line(
            "vm",
            (self.vm != Vm::default()).then(|| self.vm.to_string()),
        );
        line("collector", self.collector.map(|v| v.to_string()));
        let compiler = |is_c1| if is_c1 { "c1" } else { "full" }.to_owned();
        line("compiler", self.is_c1_only.map(compiler));
        line("classes", self.classes.map(|v| v.to_string()));
        let sizes = [
            ("metaspace", self.metaspace),
            ("code_cache", self.code_cache),
            ("thread_stack", self.thread_stack),
            ("direct", self.direct),
            ("jit", self.jit),
            ("cds", self.cds),
            ("files", self.files),
            ("agents", self.agents),
            ("malloc", self.malloc),
            ("rest", self.rest),
            ("live_heap", self.live_heap),
        ];
        line("threads", self.threads.map(|v| v.to_string()));
        for (name, size) in sizes {
            line(name, size.map(|v| v.to_string()));
        }
        for option in &self.options {
            line("option", Some(option.clone()));
        }
        text
    }

    /// The heap among its options: its measurements hold for no other heap.
    pub fn heap_option(&self) -> Option<&str> {
        let is_heap =
            |option: &&String| JvmOptionSet::from_words([option.as_str()]).is_set("MaxHeapSize");
        self.options.iter().rev().find(is_heap).map(String::as_str)
    }

    pub fn is_complete(&self) -> bool {
        let has_metaspace = self.metaspace.is_some() || self.classes.is_some();
        let has_regions = has_metaspace && self.code_cache.is_some() && self.threads.is_some();
        has_regions || self.rest.is_some()
    }
}

fn vm(text: &str) -> Option<Vm> {
    [Vm::HotSpot, Vm::OpenJ9]
        .into_iter()
        .find(|vm| vm.to_string() == text)
}

fn parse_collector(text: &str) -> Option<CollectorKind> {
    CollectorKind::ALL
        .into_iter()
        .find(|c| c.to_string() == text || c.flag() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_reads_back_what_it_printed() {
        let profile = AppProfile {
            jdk: Some(JavaVersion::new(25, 3)),
            vm: Vm::OpenJ9,
            collector: Some(CollectorKind::G1),
            is_c1_only: Some(false),
            classes: Some(12_345),
            metaspace: Some(Bytes::from_mib(80)),
            threads: Some(44),
            code_cache: Some(Bytes::from_kib(40_001)),
            options: vec!["-XX:+UseCompactObjectHeaders".to_owned()],
            ..AppProfile::default()
        };
        assert_eq!(AppProfile::parse_profile(&profile.to_file_text()), profile);
        assert!(profile.is_complete());
    }

    #[test]
    fn what_is_not_understood_is_a_note() {
        let profile =
            AppProfile::parse_profile("# c\nclasses = many\nfuture = 1\nnonsense\nthreads = 7\n");
        assert_eq!(profile.threads, Some(7));
        assert_eq!(profile.notes.len(), 3);
        assert!(!profile.is_complete());
    }
}
