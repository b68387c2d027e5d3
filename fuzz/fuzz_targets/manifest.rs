//! Any text as manifests: their documents and the containers in them, or an error; and as files of a build.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_experiment::advice::{builds, manifest};
use loadline_experiment::manifest::{ManifestFile, documents};

fuzz_target!(|text: &str| {
    loadline_fuzz::limited();
    let _ = (builds::gradle_jvms(text), builds::surefire_jvms(text));
    if let Ok(documents) = documents(text, "fuzzed.yaml") {
        let path = "fuzzed.yaml".into();
        manifest::containers(&[ManifestFile { path, documents }]);
    }
});
