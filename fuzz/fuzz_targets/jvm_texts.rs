//! Any text as what a JVM or its tools say: reports of native memory, mappings, class logs,
//! statistics of a cache, a release file, the settings that `java` prints.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_jvm::cache::{classes, scc};
use loadline_jvm::{detect, footprint, nmt};

fuzz_target!(|text: &str| {
    loadline_fuzz::limited();
    let _ = nmt::NmtSummary::from_nmt_report(text);
    let _ = classes::LoadedClasses::from_class_log(text);
    let _ = scc::SharedCacheStatistics::from_print_stats(text);
    let _ = detect::ReleaseFile::from_release_text(text);
    footprint::parse_anything(text);
});
