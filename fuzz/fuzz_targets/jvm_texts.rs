//! Any text as what a JVM or its tools say: reports of native memory, mappings, class logs,
//! statistics of a cache, a release file, the settings that `java` prints.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_jvm::cache::{classes, scc};
use loadline_jvm::{detect, footprint, nmt};

fuzz_target!(|text: &str| {
    loadline_fuzz::limited();
    let _ = nmt::Summary::parse(text);
    let _ = classes::Classes::parse(text);
    let _ = scc::Statistics::parse(text);
    let _ = detect::Release::parse(text);
    footprint::parse_anything(text);
});
