//! The JVM options that make a JVM write the log this crate reads.
//!
//! Owns their text for each JDK. HotSpot's log has CLOCK_MONOTONIC nanoseconds (`tn`, which is what
//! `System.nanoTime` reads on Linux), so pauses, samples and load share one clock; OpenJ9's has the
//! wall clock (METHODOLOGY.md says how it is placed).

use std::path::Path;

use loadline_sizing::Vm;

use crate::detect::JdkVersion;

/// The options that make a JVM log collections and safepoints to `path`, one file, no rotation.
///
/// JDK 9+: one `-Xlog` option. JDK 8: the classic options, uptime instead of the monotonic clock.
/// OpenJ9: verbose GC as XML. The JVM replaces `%p` and `%t` in `path` (OpenJ9 replaces more, and a
/// comma ends it), and a double quote in it cannot be passed: choose a plain path.
pub fn gc_log_options(path: &Path, version: &JdkVersion, kind: Vm) -> Vec<String> {
    let path = path.display();
    match kind {
        Vm::OpenJ9 => vec![format!("-Xverbosegclog:{path}")],
        Vm::HotSpot if version.feature >= 9 => {
            // An unquoted path ends at the first colon (logConfiguration.cpp), and a start script
            // need not keep quotes.
            let path = path.to_string();
            let path = if path.contains(':') {
                format!("\"{path}\"")
            } else {
                path
            };
            vec![format!(
                "-Xlog:gc*,safepoint:file={path}:tn,u,l,tg:filecount=0"
            )]
        }
        Vm::HotSpot => vec![
            format!("-Xloggc:{path}"),
            "-XX:+PrintGCDetails".to_owned(),
            "-XX:+PrintGCTimeStamps".to_owned(),
            "-XX:+PrintGCApplicationStoppedTime".to_owned(),
        ],
    }
}

const FULL: &str = "-Xlog:gc*,safepoint:file=";

/// A text with the option of [`gc_log_options`] for a JVM that runs for long: a line a collection.
pub fn shorten_gc_log_option(text: &str) -> String {
    text.replace(FULL, "-Xlog:gc,gc+init:file=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_jdk_gets_the_log_it_can_write() {
        let path = Path::new("/tmp/a:b/gc.log");
        let version = |text| JdkVersion::from_version_text(text).unwrap();
        assert_eq!(
            gc_log_options(path, &version("25.0.3"), Vm::HotSpot),
            ["-Xlog:gc*,safepoint:file=\"/tmp/a:b/gc.log\":tn,u,l,tg:filecount=0"]
        );
        let full = &gc_log_options(path, &version("25.0.3"), Vm::HotSpot)[0];
        let short = "-Xlog:gc,gc+init:file=\"/tmp/a:b/gc.log\":tn,u,l,tg:filecount=0";
        assert_eq!(shorten_gc_log_option(full), short);
        let plain = gc_log_options(Path::new("/tmp/gc.log"), &version("17"), Vm::HotSpot);
        assert_eq!(
            plain,
            ["-Xlog:gc*,safepoint:file=/tmp/gc.log:tn,u,l,tg:filecount=0"]
        );
        let old = gc_log_options(path, &version("1.8.0_402"), Vm::HotSpot);
        assert_eq!(old[0], "-Xloggc:/tmp/a:b/gc.log");
        let openj9 = gc_log_options(Path::new("/tmp/gc.log"), &version("21"), Vm::OpenJ9);
        assert_eq!(openj9, ["-Xverbosegclog:/tmp/gc.log"]);
    }
}
