//! Any text as each of the small languages of flags and files: objectives, sizes, times, sets of
//! CPUs, price lists, options of a JVM. What prints is read again as it was.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_analysis::price::{parse_lattice, parse_prices};
use loadline_analysis::slo::Slo;
use loadline_load::spec::text::PeakLoad;
use loadline_sizing::options::words;
use loadline_sizing::profile::AppProfile;
use loadline_sizing::{Bytes, CpuSet, Cpus, JavaVersion, JvmOptionSet};

fuzz_target!(|text: &str| {
    loadline_fuzz::limited();
    if let Ok(slo) = text.parse::<Slo>() {
        assert_eq!(slo.to_string().parse::<Slo>().ok(), Some(slo));
    }
    if let Ok(set) = text.parse::<CpuSet>() {
        assert_eq!(set.to_string().parse::<CpuSet>().ok(), Some(set));
    }
    if let Ok(peak) = text.parse::<PeakLoad>() {
        let printed = peak.to_string();
        assert_eq!(
            printed.parse::<PeakLoad>().map(|p| p.to_string()),
            Ok(printed)
        );
    }
    let _ = (text.parse::<Bytes>(), text.parse::<Cpus>());
    let _ = (text.parse::<JavaVersion>(), AppProfile::parse_profile(text));
    let _ = (parse_prices(text), parse_lattice(text));
    let _ = JvmOptionSet::from_words(words::split_argument_file(text));
    if let Ok(words) = words::split_environment(text) {
        JvmOptionSet::from_words(words).option_texts().count();
    }
});
