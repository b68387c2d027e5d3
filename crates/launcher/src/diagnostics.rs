//! Presets: GC log, native memory tracking, heap dump, flight recording, debugger, JMX.
//!
//! Owns the options behind each variable, and the check that a heap dump fits where it shall go.

use std::path::Path;

use loadline_sizing::{Bytes, Jdk, Options};

use crate::environment::Environment;
use crate::sys;

/// The options of every preset that is on; notes say what was left out and why.
pub fn options(
    environment: &Environment,
    jdk: Option<Jdk>,
    user: &Options,
    heap: Option<Bytes>,
    notes: &mut Vec<String>,
) -> Vec<String> {
    let mut options = Vec::new();
    let is_9 = jdk.is_none_or(|jdk| jdk.at_least(9));
    if let Some(file) = environment.text("LOADLINE_GC_LOG") {
        options.push(match is_9 {
            true => format!("-Xlog:gc*,safepoint:file={file}:tn,u,l,tg:filecount=5,filesize=20m"),
            false => format!("-Xloggc:{file}"),
        });
    }
    if let Some(level) = environment.text("LOADLINE_NMT") {
        match level.as_str() {
            "summary" | "detail" => options.push(format!("-XX:NativeMemoryTracking={level}")),
            _ => notes.push(format!("LOADLINE_NMT is `{level}`, not summary or detail; it was passed over")),
        }
    }
    if let Some(directory) = environment.text("LOADLINE_HEAP_DUMP") {
        options.extend(heap_dump(&directory, heap, notes));
    }
    if let Some(file) = environment.text("LOADLINE_JFR") {
        options.push(format!("-XX:StartFlightRecording=filename={file},dumponexit=true"));
    }
    if let Some(address) = environment.text("LOADLINE_DEBUG") {
        options.push(debug(environment, &address, is_9));
    }
    if let Some(port) = environment.text("LOADLINE_JMX") {
        options.extend(jmx(&port));
    }
    let is_new = |option: &String| {
        let own = Options::from_words([option.as_str()]);
        own.settings().all(|(name, _)| !user.is_set(name))
    };
    options.retain(is_new);
    options
}

fn heap_dump(directory: &str, heap: Option<Bytes>, notes: &mut Vec<String>) -> Vec<String> {
    let Some(free) = sys::free_space(Path::new(directory)) else {
        notes.push(format!("LOADLINE_HEAP_DUMP: {directory} is no directory that can be used; no heap dumps"));
        return Vec::new();
    };
    // A dump is about as large as what is alive, at most the heap.
    if let Some(heap) = heap.filter(|heap| *heap > free) {
        notes.push(format!(
            "LOADLINE_HEAP_DUMP: {directory} has {} MiB free, a heap of {heap} may not fit; no heap dumps",
            free.as_bytes() >> 20
        ));
        return Vec::new();
    }
    vec![
        "-XX:+HeapDumpOnOutOfMemoryError".to_owned(),
        format!("-XX:HeapDumpPath={directory}"),
    ]
}

fn debug(environment: &Environment, address: &str, is_9: bool) -> String {
    let suspend = if environment.is_on("LOADLINE_DEBUG_SUSPEND") { "y" } else { "n" };
    // Since 9 a bare port means localhost; before, every interface.
    let address = match (address.contains(':'), is_9) {
        (false, false) => format!("127.0.0.1:{address}"),
        _ => address.to_owned(),
    };
    format!("-agentlib:jdwp=transport=dt_socket,server=y,suspend={suspend},address={address}")
}

/// Bound to localhost: without a password nothing else is defensible.
fn jmx(port: &str) -> Vec<String> {
    [
        format!("port={port}"),
        format!("rmi.port={port}"),
        "host=127.0.0.1".to_owned(),
        "local.only=true".to_owned(),
        "authenticate=false".to_owned(),
        "ssl=false".to_owned(),
    ]
    .map(|setting| format!("-Dcom.sun.management.jmxremote.{setting}"))
    .into_iter()
    .chain(std::iter::once("-Djava.rmi.server.hostname=127.0.0.1".to_owned()))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)], user: &[&str]) -> (Vec<String>, Vec<String>) {
        let mut notes = Vec::new();
        let jdk = Some(Jdk::hotspot("17".parse().unwrap()));
        let user = Options::from_words(user.iter().copied());
        let heap = Some(Bytes::from_mib(64));
        (options(&Environment::of(pairs), jdk, &user, heap, &mut notes), notes)
    }

    #[test]
    fn presets_give_options_unless_the_user_did() {
        let (given, _) = of(&[("LOADLINE_NMT", "summary")], &[]);
        assert_eq!(given, ["-XX:NativeMemoryTracking=summary"]);
        let (given, _) = of(&[("LOADLINE_NMT", "summary")], &["-XX:NativeMemoryTracking=detail"]);
        assert!(given.is_empty());
        let (given, _) = of(&[("LOADLINE_DEBUG", "5005")], &[]);
        assert_eq!(given, ["-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=5005"]);
    }

    #[test]
    fn a_heap_dump_needs_a_directory_with_room() {
        let (given, notes) = of(&[("LOADLINE_HEAP_DUMP", "/no/such/place")], &[]);
        assert!(given.is_empty());
        assert!(notes[0].contains("no directory"), "{notes:?}");
        let (given, _) = of(&[("LOADLINE_HEAP_DUMP", "/tmp")], &[]);
        assert_eq!(given.len(), 2);
    }
}
