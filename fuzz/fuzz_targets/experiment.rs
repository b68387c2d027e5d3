//! Any text as an experiment file: an experiment, or an error that names the file.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use loadline_engine::experiment::ExperimentFile;

fuzz_target!(|text: &str| {
    loadline_fuzz::limited();
    if let Err(error) = ExperimentFile::from_toml(text, Path::new("fuzzed.toml")) {
        assert!(error.to_string().contains("fuzzed.toml"), "{error}");
    }
});
