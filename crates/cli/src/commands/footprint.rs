//! `loadline footprint PID`: where the memory of a running JVM is, and the profile for the launcher.
//!
//! Asks HotSpot for its native memory report and OpenJ9 for a Java dump, and lays it over the kernel's
//! count of resident pages. Measure while the service is under its load: idle services need less.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use loadline_jvm::footprint::{self, Footprint, FootprintError};
use loadline_jvm::process::JvmProcess;
use loadline_jvm::{attach, java_dump};
use loadline_sizing::{Bytes, JdkRelease, Vm};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{CommandOutcome, Error};
use crate::files;
use crate::say::{one_line_json, print_text};

/// The file has about 2 KB.
const RELEASE_LIMIT: u64 = 64 << 10;

#[derive(Args)]
pub struct FootprintArguments {
    /// Process id of the JVM; HotSpot must run with -XX:NativeMemoryTracking=detail
    #[arg(value_name = "PID", value_parser = process)]
    pid: u32,
    /// Also write the profile for loadline-launch to this file, such as loadline.profile next to
    /// the jar
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON, with sizes in bytes
    #[arg(long)]
    json: bool,
}

fn process(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|pid| *pid > 0);
    number.ok_or_else(|| "it is not a process id; `pgrep -a java` lists them".to_owned())
}

pub fn run(arguments: &FootprintArguments) -> Result<CommandOutcome, Error> {
    let pid = arguments.pid;
    let seen = if footprint::is_openj9(&smaps(pid)?) {
        read_openj9(pid)?
    } else {
        read_hotspot(pid)?
    };
    let text = if arguments.json {
        one_line_json(&footprint_document(&seen))?
    } else {
        footprint_text(&seen)
    };
    print_text(&text)?;
    if let Some(output) = &arguments.output {
        let mut profile = seen.footprint.profile(seen.live_heap);
        profile.jdk = process_jdk(pid).map(|jdk| jdk.version);
        profile.vm = seen.vm;
        profile.is_c1_only = seen.is_c1_only;
        files::write(output, &profile.to_file_text())?;
        talk!("wrote {}", output.display());
    }
    Ok(CommandOutcome::Done)
}

struct FootprintReading {
    vm: Vm,
    footprint: Footprint,
    live_heap: Option<Bytes>,
    /// Whether HotSpot's second compiler is off.
    is_c1_only: Option<bool>,
}

fn read_hotspot(pid: u32) -> Result<FootprintReading, Error> {
    let report = ask_jvm(pid, "VM.native_memory detail scale=B")?;
    let footprint =
        Footprint::from_nmt_and_smaps(&report, &smaps(pid)?).map_err(footprint_error)?;
    Ok(FootprintReading {
        vm: Vm::HotSpot,
        footprint,
        is_c1_only: Some(is_c1_only(&ask_jvm(pid, "VM.flags")?)),
        // Last, because it collects: the resident pages should be those after the load.
        live_heap: footprint::live_heap(&ask_jvm(pid, "GC.class_histogram")?),
    })
}

fn read_openj9(pid: u32) -> Result<FootprintReading, Error> {
    let smaps = smaps(pid)?;
    let dump = java_dump::take_java_dump(pid)
        .map_err(|e| Error::environment(&e).with_hint_if(e.dump_hint()))?;
    Ok(FootprintReading {
        vm: Vm::OpenJ9,
        footprint: Footprint::of_java_dump(&dump, &smaps).map_err(footprint_error)?,
        live_heap: None,
        is_c1_only: None,
    })
}

fn footprint_error(error: FootprintError) -> Error {
    Error::environment(&error).with_hint_if(error.footprint_hint())
}

fn smaps(pid: u32) -> Result<String, Error> {
    let path = format!("/proc/{pid}/smaps");
    let text = std::fs::read_to_string(&path);
    text.map_err(|e| {
        Error::environment(format!("process {pid}: {path}: {e}"))
            .with_hint("it has exited, or loadline may not inspect it (run as root or as its user)")
    })
}

fn ask_jvm(pid: u32, command: &str) -> Result<String, Error> {
    attach::run_jcmd(pid, command).map_err(|e| Error::environment(&e).with_hint_if(e.attach_hint()))
}

/// The JDK of the process's `java`, read in the process's own file system.
fn process_jdk(pid: u32) -> Option<JdkRelease> {
    let process = JvmProcess::for_pid(pid).ok()?;
    let java = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let mut homes = java.ancestors().skip(2).take(2);
    homes.find_map(|home| {
        let release = process.read(&home.join("release"), RELEASE_LIMIT).ok()?;
        JdkRelease::from_release(&String::from_utf8_lossy(&release))
    })
}

fn is_c1_only(flags: &str) -> bool {
    let mut flags = flags.split_whitespace();
    let level = flags.find_map(|flag| flag.strip_prefix("-XX:TieredStopAtLevel="));
    let level = level.and_then(|level| level.parse::<u32>().ok());
    level.is_some_and(|level| level < 4)
}

fn rows(footprint: &Footprint) -> [(&'static str, Bytes, &'static str); 10] {
    [
        ("heap", footprint.heap, "touched"),
        ("metaspace", footprint.metaspace, "class space included"),
        ("code cache", footprint.code_cache, "compiled code"),
        ("thread stacks", footprint.stacks, "touched"),
        ("GC native", footprint.gc, "the collector's own"),
        ("direct", footprint.direct, "NIO buffers"),
        (
            "JIT and JVM",
            footprint.jvm,
            "compilers' arenas, symbols, modules",
        ),
        ("CDS", footprint.archive, "the mapped class archive"),
        (
            "mapped files",
            footprint.files,
            "the JVM's code, libraries, jars",
        ),
        ("malloc", footprint.malloc, "in no category of the JVM"),
    ]
}

fn footprint_text(seen: &FootprintReading) -> String {
    let footprint = &seen.footprint;
    let line = |name: &str, size: Bytes, what: &str| {
        format!("{name:<14} {:>8.1} MiB  {what}", size.as_mib())
    };
    let parts = rows(footprint).map(|(name, size, what)| line(name, size, what));
    let mut lines = Vec::from(parts);
    lines.push(line("resident", footprint.resident, "all of it"));
    let (classes, threads) = (footprint.classes, footprint.threads);
    lines.push(match footprint.compiler_peak {
        Some(peak) => format!(
            "\n{classes} classes, {threads} threads; the compilers' arenas peaked at {:.1} MiB; native memory tracking takes {:.1} MiB",
            peak.as_mib(),
            footprint.tracking.as_mib(),
        ),
        None => format!("\n{classes} classes, {threads} Java threads; from a Java dump, which stopped all threads"),
    });
    if let Some(live) = seen.live_heap {
        lines.push(format!("{:.1} MiB of the heap are live", live.as_mib()));
    }
    lines.join("\n")
}

/// Where the memory of a JVM is, as JSON; sizes in bytes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FootprintDocument {
    /// Version of this form.
    schema: u32,
    /// Memory of the process that is in RAM: the sum of the regions.
    resident: u64,
    /// `heap`, `metaspace`, `code_cache`, `thread_stacks`, `gc_native`, `direct`, `jit_and_jvm`,
    /// `cds`, `mapped_files`, `malloc`.
    regions: BTreeMap<String, u64>,
    /// Classes loaded.
    classes: u64,
    /// Threads.
    threads: u64,
    /// Highest use of the compilers' arenas; null where the JVM does not say (OpenJ9).
    compiler_arena_peak: Option<u64>,
    /// What native memory tracking itself takes.
    native_memory_tracking: u64,
    /// Heap in use after a collection; null where the JVM does not say.
    live_heap: Option<u64>,
}

fn footprint_document(seen: &FootprintReading) -> FootprintDocument {
    let footprint = &seen.footprint;
    let regions = rows(footprint).map(|(name, size, _)| {
        let name = name.replace(' ', "_").to_lowercase();
        (name, size.as_bytes())
    });
    FootprintDocument {
        schema: 1,
        resident: footprint.resident.as_bytes(),
        regions: regions.into(),
        classes: footprint.classes,
        threads: footprint.threads,
        compiler_arena_peak: footprint.compiler_peak.map(Bytes::as_bytes),
        native_memory_tracking: footprint.tracking.as_bytes(),
        live_heap: seen.live_heap.map(Bytes::as_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_every_region() {
        let mut seen = FootprintReading {
            vm: Vm::HotSpot,
            footprint: Footprint {
                resident: Bytes::from_mib(60),
                heap: Bytes::from_mib(20),
                metaspace: Bytes::from_mib(40),
                classes: 9000,
                threads: 31,
                compiler_peak: Some(Bytes::default()),
                ..Footprint::default()
            },
            live_heap: Some(Bytes::from_mib(12)),
            is_c1_only: None,
        };
        insta::assert_snapshot!(footprint_text(&seen), @r"
        heap               20.0 MiB  touched
        metaspace          40.0 MiB  class space included
        code cache          0.0 MiB  compiled code
        thread stacks       0.0 MiB  touched
        GC native           0.0 MiB  the collector's own
        direct              0.0 MiB  NIO buffers
        JIT and JVM         0.0 MiB  compilers' arenas, symbols, modules
        CDS                 0.0 MiB  the mapped class archive
        mapped files        0.0 MiB  the JVM's code, libraries, jars
        malloc              0.0 MiB  in no category of the JVM
        resident           60.0 MiB  all of it

        9000 classes, 31 threads; the compilers' arenas peaked at 0.0 MiB; native memory tracking takes 0.0 MiB
        12.0 MiB of the heap are live
        ");
        seen.footprint.compiler_peak = None;
        let openj9 = footprint_text(&seen);
        assert!(
            openj9.contains("\n9000 classes, 31 Java threads; from a Java dump"),
            "{openj9}"
        );
        let document = serde_json::to_value(footprint_document(&seen)).unwrap();
        assert_eq!(document["compiler_arena_peak"], serde_json::Value::Null);
        assert_eq!(document["regions"]["metaspace"], 40 << 20);
        assert_eq!(document["regions"]["jit_and_jvm"], 0);
    }

    #[test]
    fn the_compiler_is_read_from_the_flags() {
        assert!(is_c1_only(
            "-XX:MaxHeapSize=1 -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        ));
        assert!(!is_c1_only("-XX:TieredStopAtLevel=4"));
        assert!(!is_c1_only("-XX:+UseSerialGC"));
    }
}
