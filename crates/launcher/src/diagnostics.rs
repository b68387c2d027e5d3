//! Presets: GC log, native memory tracking, heap dump, flight recording, debugger, JMX.
//!
//! Owns the options behind each variable, and the check that a heap dump fits where it shall go.

use std::path::Path;

use loadline_sizing::decision::ChosenOption;
use loadline_sizing::regions::SizeProvenance;
use loadline_sizing::{Bytes, JdkRelease, JvmOptionSet, Vm};

use crate::environment::Environment;
use crate::sys;

/// The options of every enabled preset; notes name the omissions with their reasons.
pub fn preset_options(
    environment: &Environment,
    jdk: Option<JdkRelease>,
    user: &JvmOptionSet,
    heap: Option<Bytes>,
    notes: &mut Vec<String>,
) -> Vec<ChosenOption> {
    let is_9 = jdk.is_none_or(|jdk| jdk.at_least(9));
    let is_openj9 = jdk.is_some_and(|jdk| jdk.vm == Vm::OpenJ9);
    let mut chosen = Vec::new();
    for (name, preset) in PRESETS {
        let Some(value) = environment.text_value(name) else {
            continue;
        };
        let asked = PresetContext {
            environment,
            value: &value,
            user,
            is_9,
            is_openj9,
            heap,
        };
        match preset(&asked) {
            Ok(options) => chosen.extend(options.into_iter().map(|option| ChosenOption {
                option,
                provenance: SizeProvenance::User,
                reason: (*name).to_owned(),
            })),
            Err(reason) => notes.push(format!("{name}: {reason}; it was passed over")),
        }
    }
    let is_new = |chosen: &ChosenOption| {
        let own = JvmOptionSet::from_words([chosen.option.as_str()]);
        own.settings().all(|(name, _)| !user.is_set(name))
    };
    chosen.retain(is_new);
    chosen
}

struct PresetContext<'a> {
    environment: &'a Environment,
    value: &'a str,
    user: &'a JvmOptionSet,
    is_9: bool,
    is_openj9: bool,
    heap: Option<Bytes>,
}

/// The options of a preset, or why it is left out: the JVM would not start with them.
type Preset = fn(&PresetContext<'_>) -> Result<Vec<String>, String>;

const PRESETS: &[(&str, Preset)] = &[
    ("LOADLINE_GC_LOG", gc_log_options),
    ("LOADLINE_NMT", native_memory),
    ("LOADLINE_HEAP_DUMP", heap_dump),
    ("LOADLINE_JFR", recording),
    ("LOADLINE_DEBUG", debug),
    ("LOADLINE_JMX", jmx),
];

fn gc_log_options(asked: &PresetContext<'_>) -> Result<Vec<String>, String> {
    let file = check_writable(asked.value)?;
    Ok(vec![match (asked.is_openj9, asked.is_9) {
        // Files and collections in each: about 4 KB a collection.
        (true, _) => format!("-Xverbosegclog:{file},5,5000"),
        (false, true) => {
            format!("-Xlog:gc*,safepoint:file={file}:tn,u,l,tg:filecount=5,filesize=20m")
        }
        (false, false) => format!("-Xloggc:{file}"),
    }])
}

fn native_memory(asked: &PresetContext<'_>) -> Result<Vec<String>, String> {
    match asked.value {
        _ if asked.is_openj9 => Err("OpenJ9 ignores native memory tracking in silence".to_owned()),
        level @ ("summary" | "detail") => Ok(vec![format!("-XX:NativeMemoryTracking={level}")]),
        level => Err(format!("`{level}` is not summary or detail")),
    }
}

fn recording(asked: &PresetContext<'_>) -> Result<Vec<String>, String> {
    if asked.is_openj9 {
        return Err("OpenJ9 has no such recordings".to_owned());
    }
    let file = check_writable(asked.value)?;
    Ok(vec![format!(
        "-XX:StartFlightRecording=filename={file},dumponexit=true"
    )])
}

/// A file that the JVM can make: it does not start when it cannot, nor with a name that its
/// options cannot hold.
fn check_writable(file: &str) -> Result<&str, String> {
    if file.contains([':', ',', '"', ' ', '\n']) {
        return Err(format!("the JVM's options cannot hold the name `{file}`"));
    }
    let directory = Path::new(file)
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    if sys::is_writable(directory) && !Path::new(file).is_dir() {
        Ok(file)
    } else {
        Err(format!(
            "{} is no directory that can be written",
            directory.display()
        ))
    }
}

fn heap_dump(asked: &PresetContext<'_>) -> Result<Vec<String>, String> {
    let directory = asked.value;
    let Some(free) = sys::free_space(Path::new(directory)) else {
        return Err(format!("{directory} is no directory that can be used"));
    };
    // A dump is about as large as the live set, at most the heap.
    if let Some(heap) = asked.heap.filter(|heap| *heap > free) {
        let free = free.as_bytes() >> 20;
        let why = format!("{directory} has {free} MiB free, a heap of {heap} may not fit");
        return Err(why);
    }
    Ok(vec![
        "-XX:+HeapDumpOnOutOfMemoryError".to_owned(),
        format!("-XX:HeapDumpPath={directory}"),
    ])
}

/// The options that load the debugger's agent: the JVM does not start with two.
const DEBUGGERS: &[&str] = &["-agentlib:jdwp", "-Xrunjdwp"];

fn debug(asked: &PresetContext<'_>) -> Result<Vec<String>, String> {
    let is_there = |debugger: &&str| asked.user.with_prefix(debugger).next().is_some();
    if let Some(debugger) = DEBUGGERS.iter().find(|debugger| is_there(debugger)) {
        return Err(format!("the options have {debugger} already"));
    }
    let suspend = if asked.environment.is_on("LOADLINE_DEBUG_SUSPEND") {
        "y"
    } else {
        "n"
    };
    let (host, digits) = match asked.value.rsplit_once(':') {
        Some((host, digits)) => (Some(host), digits),
        None => (None, asked.value),
    };
    let port = parse_port(digits)?;
    // Since 9 a bare port means localhost; before, every interface.
    let address = match (host, asked.is_9) {
        (Some(host), _) => format!("{host}:{port}"),
        (None, true) => port.to_string(),
        (None, false) => format!("127.0.0.1:{port}"),
    };
    Ok(vec![format!(
        "-agentlib:jdwp=transport=dt_socket,server=y,suspend={suspend},address={address}"
    )])
}

/// Bound to localhost: without a password nothing else is defensible.
fn jmx(asked: &PresetContext<'_>) -> Result<Vec<String>, String> {
    let port = parse_port(asked.value)?;
    let remote = [
        format!("port={port}"),
        format!("rmi.port={port}"),
        "host=127.0.0.1".to_owned(),
        "local.only=true".to_owned(),
        "authenticate=false".to_owned(),
        "ssl=false".to_owned(),
    ];
    let remote = remote.map(|setting| format!("-Dcom.sun.management.jmxremote.{setting}"));
    let host = "-Djava.rmi.server.hostname=127.0.0.1".to_owned();
    Ok(remote.into_iter().chain([host]).collect())
}

fn parse_port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("`{text}` is no port"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)], user: &[&str]) -> (Vec<String>, Vec<String>) {
        of_jdk(JdkRelease::for_hotspot("17".parse().unwrap()), pairs, user)
    }

    fn of_jdk(
        jdk: JdkRelease,
        pairs: &[(&str, &str)],
        user: &[&str],
    ) -> (Vec<String>, Vec<String>) {
        let mut notes = Vec::new();
        let jdk = Some(jdk);
        let user = JvmOptionSet::from_words(user.iter().copied());
        let heap = Some(Bytes::from_mib(64));
        let chosen = preset_options(
            &Environment::from_pairs(pairs),
            jdk,
            &user,
            heap,
            &mut notes,
        );
        (
            chosen.into_iter().map(|chosen| chosen.option).collect(),
            notes,
        )
    }

    #[test]
    fn openj9_gets_no_option_of_hotspot() {
        let openj9 = JdkRelease {
            vm: Vm::OpenJ9,
            ..JdkRelease::for_hotspot("25".parse().unwrap())
        };
        let asked = [
            ("LOADLINE_GC_LOG", "/tmp/gc.log"),
            ("LOADLINE_NMT", "summary"),
            ("LOADLINE_JFR", "/tmp/a.jfr"),
        ];
        let (given, notes) = of_jdk(openj9, &asked, &[]);
        assert_eq!(given, ["-Xverbosegclog:/tmp/gc.log,5,5000"]);
        assert!(
            notes[0].contains("LOADLINE_NMT: OpenJ9 ignores"),
            "{notes:?}"
        );
        assert!(notes[1].contains("LOADLINE_JFR"), "{notes:?}");
    }

    #[test]
    fn presets_give_options_unless_the_user_did() {
        let (given, _) = of(&[("LOADLINE_NMT", "summary")], &[]);
        assert_eq!(given, ["-XX:NativeMemoryTracking=summary"]);
        let (given, _) = of(
            &[("LOADLINE_NMT", "summary")],
            &["-XX:NativeMemoryTracking=detail"],
        );
        assert!(given.is_empty());
        let (given, _) = of(&[("LOADLINE_DEBUG", "5005")], &[]);
        assert_eq!(
            given,
            ["-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=5005"]
        );
    }

    #[test]
    fn a_debugger_is_loaded_once() {
        let asked = [("LOADLINE_DEBUG", "5005")];
        for own in [
            "-agentlib:jdwp=transport=dt_socket,server=y",
            "-Xrunjdwp:server=y",
        ] {
            let (given, notes) = of(&asked, &[own]);
            assert!(given.is_empty(), "{given:?}");
            assert!(notes[0].contains("already"), "{notes:?}");
        }
        assert_eq!(of(&asked, &["-agentlib:hprof"]).0.len(), 1);
    }

    #[test]
    fn a_heap_dump_needs_a_directory_with_room() {
        let (given, notes) = of(&[("LOADLINE_HEAP_DUMP", "/no/such/place")], &[]);
        assert!(given.is_empty());
        assert!(notes[0].contains("no directory"), "{notes:?}");
        let (given, _) = of(&[("LOADLINE_HEAP_DUMP", "/tmp")], &[]);
        assert_eq!(given.len(), 2);
    }

    #[test]
    fn what_would_stop_the_jvm_is_passed_over() {
        for (name, value) in [
            ("LOADLINE_GC_LOG", "/no/such/place/gc.log"),
            ("LOADLINE_GC_LOG", "/tmp/a:b.log"),
            ("LOADLINE_JFR", "/tmp"),
            ("LOADLINE_NMT", "much"),
            ("LOADLINE_DEBUG", "here"),
            ("LOADLINE_JMX", "99999"),
        ] {
            let (given, notes) = of(&[(name, value)], &[]);
            assert!(given.is_empty(), "{name}={value}: {given:?}");
            assert!(notes[0].starts_with(name), "{notes:?}");
        }
        let (given, _) = of(&[("LOADLINE_GC_LOG", "/tmp/gc.log")], &[]);
        assert_eq!(
            given,
            ["-Xlog:gc*,safepoint:file=/tmp/gc.log:tn,u,l,tg:filecount=5,filesize=20m"]
        );
    }
}
