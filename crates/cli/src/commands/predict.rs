//! `loadline predict`: the JVM's choices in a container of this size.

use std::collections::BTreeMap;
use std::ops::Range;

use clap::Args;
use loadline_report::format::count_of;
use loadline_sizing::hotspot::heap::idle_percentage;
use loadline_sizing::hotspot::node::MeasuredContainer;
use loadline_sizing::hotspot::refusal::HotSpotRefusal;
use loadline_sizing::hotspot::{self, CollectorKind, HotSpotErgonomics, MachineSize, PrintedValue};
use loadline_sizing::openj9::{self, IgnoredOption};
use loadline_sizing::options::{OptionOrigin, words};
use loadline_sizing::regions::heap::object_to_small;
use loadline_sizing::sight::{blind_places, without_container_support};
use loadline_sizing::{Bytes, Cpus, JdkRelease, JvmOptionSet, Vm};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{CommandOutcome, Error};
use crate::output::AnswerPrinter;
use crate::say::one_line_json;

#[derive(Args)]
pub struct PredictArguments {
    /// CPU limit: 1.5 or 1500m; without one the JVM sees --node
    #[arg(long, visible_alias = "cpus", value_name = "CPUS", value_parser = parse_cpu_limit)]
    cpu: Option<Cpus>,
    /// CPUs of the host: a container without a CPU limit sees all, and one with a limit never more
    /// [default: this machine's, if --cpu is missing]
    #[arg(long, value_name = "CPUS", value_parser = clap::value_parser!(u32).range(1..=8192))]
    node: Option<u32>,
    /// Memory of the host, which a JVM without container support takes for its own [default: this
    /// machine's]
    #[arg(long, value_name = "SIZE")]
    node_memory: Option<Bytes>,
    /// Memory limit: 512Mi, 2Gi.
    #[arg(long, visible_alias = "mem", value_name = "SIZE")]
    memory: Bytes,
    /// JDK: 17, 17.0.15, 8u412, graalvm-21; with OpenJ9: openj9-25, semeru-21.
    #[arg(long, value_name = "VERSION")]
    jdk: JdkRelease,
    /// JVM options as one text: '-XX:+UseG1GC -Xms64m'.
    #[arg(
        long,
        alias = "flags",
        value_name = "OPTIONS",
        allow_hyphen_values = true,
        default_value = ""
    )]
    jvm: String,
    /// Print JSON; `flags` has the JVM's names and units, as printed by -XX:+PrintFlagsFinal or
    /// OpenJ9's GC log.
    #[arg(long)]
    json: bool,
}

/// Less memory than any JVM starts in.
const SMALLEST: Bytes = Bytes::from_mib(1);

const LEAST: Cpus = Cpus::from_millis(10);

/// Heaps in which uncompressed references cost more room than they bring.
const UNCOMPRESSED: Range<Bytes> = Bytes::from_gib(30)..Bytes::from_gib(48);

fn parse_cpu_limit(text: &str) -> Result<Cpus, String> {
    let cpu: Cpus = text.parse().map_err(|e| format!("{e}"))?;
    if cpu < LEAST {
        Err(format!(
            "`{text}` is too little CPU: the kernel accepts no quota below {}m",
            LEAST.as_millis()
        ))
    } else {
        Ok(cpu)
    }
}

pub fn run(arguments: &PredictArguments, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    let refuse = |why: String| Error::usage(format!("--jvm: {why}"));
    let hint = "write options as in JAVA_TOOL_OPTIONS: '-XX:+UseG1GC -Xms64m'";
    let words = words::split_environment(&arguments.jvm);
    let words = words.map_err(|error| refuse(error.to_string()).with_hint(hint))?;
    if let Some(at) = words.iter().position(|word| !word.starts_with('-')) {
        let word = &words[at];
        let before = words[..at].last().filter(|before| before.starts_with("--"));
        let refusal = refuse(format!(
            "`{word}` is not an option: it does not start with -"
        ));
        let file = word.strip_prefix('@');
        let of_file =
            || file.map(|file| format!("give the options in the file: --jvm \"$(cat {file})\""));
        let instead = before.map(|before| format!("write {before}={word}"));
        let instead = instead.or_else(of_file);
        return Err(refusal.with_hint(instead.unwrap_or(hint.to_owned())));
    }
    if arguments.memory < SMALLEST {
        let bytes = arguments.memory.as_bytes();
        let problem = format!("--memory: no JVM starts in {bytes} bytes");
        let mib = bytes.max(512);
        return Err(Error::usage(problem)
            .with_hint(format!("a number without a unit is bytes: write {mib}Mi")));
    }
    let options = JvmOptionSet::from_words(words);
    let (document, text) = match arguments.jdk.vm {
        Vm::HotSpot => of_hotspot(arguments, &options)?,
        Vm::OpenJ9 => of_openj9(arguments, &options)?,
    };
    out.print_answer(&if arguments.json {
        one_line_json(&document)?
    } else {
        text
    })?;
    Ok(CommandOutcome::Done)
}

fn prediction_refused(refusal: impl std::fmt::Display) -> Error {
    Error::usage(format!("the JVM would not start: {refusal}"))
}

fn of_hotspot(
    arguments: &PredictArguments,
    options: &JvmOptionSet,
) -> Result<(PredictDocument, String), Error> {
    let jdk = arguments.jdk;
    let machine = predicted_machine(arguments, jdk, options);
    let limited = with_heap_limit(arguments, jdk, options);
    let prediction = hotspot::predict(jdk, machine, &limited).map_err(|refusal| {
        let hint = match refusal {
            HotSpotRefusal::HeapTooSmall { .. } => {
                "a number without a unit is bytes; change --jvm: -Xmx512m"
            }
            _ => "java exits with 1 and the same reason; change --jvm",
        };
        prediction_refused(refusal).with_hint(hint)
    })?;
    if let Some(note) = hotspot::rests_on(jdk) {
        talk!("note: {note}");
    }
    blindness_notes(arguments, jdk, options);
    for begin in ["-XX:Flags=", "-XX:VMOptionsFile="] {
        for option in options.with_prefix(begin) {
            talk!(
                "note: {option}: the options in the file count too, but are not read here: give them with --jvm"
            );
        }
    }
    warn_of_heap(prediction.heap.max, arguments.memory);
    for (option, meant) in hotspot::refusal::tiny_percentages(options) {
        say!(
            "warning: {option} is less than one percent of the memory: it is a percentage, write {meant}"
        );
    }
    if let Some((idle, other)) = idle_percentage(jdk, machine.memory, &limited) {
        let memory = machine.memory.to_short();
        say!("warning: {idle} has no effect in {memory}: {other} applies there");
    }
    let heap = prediction.heap;
    let is_chosen = options.is_set("UseCompressedOops") || prediction.collector == CollectorKind::Z;
    if UNCOMPRESSED.contains(&heap.max) && !heap.compressed_oops && !is_chosen {
        let max = heap.max;
        say!(
            "warning: references in a heap of {max} are not compressed, so its objects are larger: -Xmx31g holds more"
        );
    }
    let unknown = hotspot::refusal::unknown_flags(options).join(" ");
    if !unknown.is_empty() {
        talk!(
            "note: not checked: {unknown}; `java OPTIONS -version` shows whether a JVM accepts it"
        );
    }
    let document = prediction_document(&prediction);
    Ok((document, prediction_text(&prediction)))
}

fn of_openj9(
    arguments: &PredictArguments,
    options: &JvmOptionSet,
) -> Result<(PredictDocument, String), Error> {
    let jdk = arguments.jdk;
    let host = arguments.node.or(arguments.cpu.map(Cpus::ceil));
    let machine = MachineSize {
        memory: arguments.memory,
        cpus: openj9::count_processors(arguments.cpu, host.unwrap_or_else(own_cpus)),
    };
    let prediction = openj9::predict(jdk, machine, options).map_err(|refusal| match refusal {
        openj9::OpenJ9Refusal::LimitUnseen => {
            Error::usage(format!("--jvm: {refusal}")).with_hint("take the option out of --jvm")
        }
        refusal => prediction_refused(refusal)
            .with_hint("java exits with 1 and the same reason; change --jvm"),
    })?;
    if let Some(note) = openj9::rests_on(jdk) {
        talk!("note: {note}");
    }
    for unheard in IgnoredOption::find_among(options) {
        talk!("note: {unheard}");
    }
    let flags = prediction.predicted_flags();
    let text = openj9_text(&prediction);
    let document = PredictDocument {
        schema: 1,
        jdk: jdk.version.to_string(),
        memory_bytes: machine.memory.as_bytes(),
        processors: prediction.machine.cpus,
        collector: prediction.policy.to_string(),
        common_pool_parallelism: prediction.common_pool,
        virtual_thread_carriers: prediction.virtual_thread_carriers,
        flags: values(flags),
    };
    Ok((document, text))
}

fn openj9_text(prediction: &openj9::OpenJ9Ergonomics) -> String {
    let head = format!(
        "OpenJ9 {} with {} and {}: {} with a heap of {} (initial {}), {}, \
         common pool of {}\n",
        prediction.jdk.version,
        prediction.machine.memory,
        count_of(prediction.machine.cpus as usize, "processor"),
        prediction.policy,
        prediction.heap.max,
        prediction.heap.initial,
        count_of(prediction.gc_threads as usize, "collector thread"),
        prediction.common_pool,
    );
    let flags = prediction.predicted_flags().into_iter();
    flags.fold(head, |text, (name, value)| {
        format!("{text}\n{name:<26} {value}")
    })
}

fn blindness_notes(arguments: &PredictArguments, jdk: JdkRelease, options: &JvmOptionSet) {
    if let Some(why) = without_container_support(jdk, options) {
        let heap = if options.switch_value(HEAP_LIMIT) == Some(true) {
            "its heap follows the limit by -XX:+UseCGroupMemoryLimitForHeap, its processors and collector follow the node"
        } else {
            "it takes the node's memory and processors (--node-memory, --node)"
        };
        let limit = arguments.memory;
        say!("warning: {why}: the limit of {limit} is not seen; {heap}");
    }
    for place in blind_places(jdk, options) {
        talk!("note: {place}");
    }
}

fn warn_of_heap(heap: Bytes, limit: Bytes) {
    if let Some(objection) = object_to_small(heap) {
        say!("warning: {objection}");
    }
    if heap >= limit {
        say!(
            "warning: the heap of {heap} is not below the limit of {limit}: the kernel kills the JVM before the heap is full"
        );
    }
}

/// The option of 8u131 to 10 by which the heap alone follows the limit.
const HEAP_LIMIT: &str = "UseCGroupMemoryLimitForHeap";

fn with_heap_limit(
    arguments: &PredictArguments,
    jdk: JdkRelease,
    options: &JvmOptionSet,
) -> JvmOptionSet {
    let is_blind = without_container_support(jdk, options).is_some();
    let is_set = options.switch_value(HEAP_LIMIT) == Some(true);
    let limit = format!("-XX:MaxRAM={}", arguments.memory.as_bytes());
    let limit = (is_blind && is_set).then_some((limit, OptionOrigin::ToolOptions));
    let own = options.option_texts();
    let own = own.map(|(text, origin)| (text.to_owned(), origin));
    JvmOptionSet::merge(limit.into_iter().chain(own))
}

fn own_memory() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = kib.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(Bytes::from_bytes(kib * 1024))
}

fn own_cpus() -> u32 {
    let cpus = std::thread::available_parallelism();
    cpus.map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(1))
}

fn predicted_machine(
    arguments: &PredictArguments,
    jdk: JdkRelease,
    options: &JvmOptionSet,
) -> MachineSize {
    let limited = arguments.cpu.map_or_else(own_cpus, Cpus::ceil).max(1);
    let node_memory = arguments.node_memory.or_else(own_memory);
    let memory = match without_container_support(jdk, options) {
        Some(_) => node_memory.unwrap_or(arguments.memory),
        None => arguments.memory,
    };
    let container = MeasuredContainer {
        memory: Some(arguments.memory),
        host_memory: arguments.memory,
        cpu: arguments.cpu,
        shares: None,
        cpus: match without_container_support(jdk, options) {
            Some(_) => arguments.node.unwrap_or_else(own_cpus),
            None => arguments.node.unwrap_or(limited),
        },
    };
    MachineSize {
        memory,
        cpus: container.counted_processors(jdk, options, container.cpus),
    }
}

/// What the JVM would choose, as JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PredictDocument {
    /// Version of this form.
    schema: u32,
    /// The JDK that was asked about.
    jdk: String,
    /// Memory as the JVM sees it.
    memory_bytes: u64,
    /// Processors as the JVM sees them.
    processors: u32,
    /// The collector it would use.
    collector: String,
    /// Threads of the common fork-join pool.
    common_pool_parallelism: u32,
    /// Carriers of virtual threads; null where the JDK has none.
    virtual_thread_carriers: Option<u32>,
    /// The JVM's names and units: HotSpot's as -XX:+PrintFlagsFinal prints them, OpenJ9's as its GC
    /// log and -verbose:sizes do.
    flags: BTreeMap<String, FlagValue>,
}

/// Value of a flag.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum FlagValue {
    /// On or off.
    Switch(bool),
    /// A number in the flag's own unit.
    Number(u64),
}

fn values(flags: Vec<(&'static str, PrintedValue)>) -> BTreeMap<String, FlagValue> {
    let value = |value| match value {
        PrintedValue::Switch(value) => FlagValue::Switch(value),
        PrintedValue::Number(value) => FlagValue::Number(value),
    };
    let flags = flags.into_iter();
    flags
        .map(|(name, of)| (name.to_owned(), value(of)))
        .collect()
}

fn prediction_document(prediction: &HotSpotErgonomics) -> PredictDocument {
    let flags = prediction.printed_flags().into_iter();
    PredictDocument {
        schema: 1,
        jdk: prediction.jdk.version.to_string(),
        memory_bytes: prediction.machine.memory.as_bytes(),
        processors: prediction.machine.cpus,
        collector: prediction.collector.to_string(),
        common_pool_parallelism: prediction.common_pool,
        virtual_thread_carriers: prediction.virtual_thread_carriers,
        flags: values(flags.map(|flag| (flag.name, flag.value)).collect()),
    }
}

fn prediction_text(prediction: &HotSpotErgonomics) -> String {
    let heap = &prediction.heap;
    let threads = prediction.gc_threads;
    let mut text = format!(
        "JDK {} with {} and {}: {} with a heap of {} (initial {}), {} + {} collector \
         threads, {} compiler threads, common pool of {}\n",
        prediction.jdk.version,
        prediction.machine.memory.to_short(),
        count_of(prediction.machine.cpus as usize, "processor"),
        prediction.collector,
        heap.max,
        heap.initial,
        threads.parallel,
        threads.concurrent,
        prediction.compilers.count,
        prediction.common_pool,
    );
    for flag in prediction.printed_flags() {
        let name = flag.name;
        // HotSpot's way to say that there is no bound; the JSON keeps it.
        match flag.value {
            PrintedValue::Number(u64::MAX) => text.push_str(&format!("\n{name:<26} unlimited")),
            value => text.push_str(&format!("\n{name:<26} {value}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predict(memory: &str, cpu: &str, jdk: &str) -> HotSpotErgonomics {
        let machine = MachineSize::from_limits(memory.parse().unwrap(), cpu.parse().unwrap());
        let jdk = JdkRelease::for_hotspot(jdk.parse().unwrap());
        hotspot::predict(jdk, machine, &JvmOptionSet::none()).unwrap()
    }

    #[test]
    fn json_has_hotspots_names_and_units() {
        let document = prediction_document(&predict("512Mi", "1.5", "17"));
        let document = serde_json::to_value(document).unwrap();
        assert_eq!(document["processors"], 2);
        assert_eq!(document["flags"]["MaxHeapSize"], 134_217_728);
        assert_eq!(document["flags"]["UseSerialGC"], true);
        assert_eq!(document["flags"]["ThreadStackSize"], 1024);
    }

    #[test]
    fn without_a_cpu_limit_the_host_counts_and_with_one_it_bounds() {
        let of = |cpu: Option<&str>, node| {
            let asked = PredictArguments {
                cpu: cpu.map(|c| c.parse().unwrap()),
                node,
                node_memory: None,
                memory: "4Gi".parse().unwrap(),
                jdk: "25".parse().unwrap(),
                jvm: String::new(),
                json: false,
            };
            predicted_machine(&asked, asked.jdk, &JvmOptionSet::none()).cpus
        };
        assert_eq!(of(None, Some(64)), 64);
        assert_eq!(of(Some("1500m"), Some(64)), 2);
        assert_eq!(of(Some("8"), Some(4)), 4);
        assert_eq!(of(Some("8"), None), 8);
    }

    #[test]
    fn a_jvm_without_container_support_takes_the_node() {
        let of = |jdk: &str, jvm: &str| {
            let asked = PredictArguments {
                cpu: Some("1".parse().unwrap()),
                node: Some(16),
                node_memory: Some("64Gi".parse().unwrap()),
                memory: "128Mi".parse().unwrap(),
                jdk: jdk.parse().unwrap(),
                jvm: jvm.to_owned(),
                json: false,
            };
            let options = JvmOptionSet::from_words(jvm.split_whitespace());
            let machine = predicted_machine(&asked, asked.jdk, &options);
            let options = with_heap_limit(&asked, asked.jdk, &options);
            let found = hotspot::predict(asked.jdk, machine, &options).unwrap();
            format!("{} {} {}", found.heap.max, found.collector, machine.cpus)
        };
        let flags = "-XX:+UnlockExperimentalVMOptions -XX:+UseCGroupMemoryLimitForHeap";
        assert_eq!(of("8u131", ""), "16Gi Parallel 16");
        assert_eq!(of("8u131", flags), "64Mi Parallel 16");
        assert_eq!(of("8u181", ""), "16Gi Parallel 16");
        assert_eq!(of("9", ""), "16Gi G1 16");
        assert_eq!(of("8u191", ""), "64Mi Serial 1");
    }

    #[test]
    fn one_processor_is_one_and_no_bound_is_said() {
        let text = prediction_text(&predict("2Gi", "1", "17"));
        assert!(text.contains("and 1 processor: "), "{text}");
        assert!(
            text.contains("MaxMetaspaceSize           unlimited"),
            "{text}"
        );
        assert!(!text.contains(&u64::MAX.to_string()), "{text}");
    }

    #[test]
    fn text_begins_with_a_sentence() {
        let text = prediction_text(&predict("2Gi", "2", "25"));
        let first = text.lines().next().unwrap();
        assert_eq!(
            first,
            "JDK 25 with 2Gi and 2 processors: G1 with a heap of 512Mi (initial 32Mi), 2 + 1 collector threads, \
             2 compiler threads, common pool of 1"
        );
    }

    #[test]
    fn openj9_has_its_own_rule_and_names_and_says_what_it_would_ignore() {
        let asked = PredictArguments {
            cpu: Some("1400m".parse().unwrap()),
            node: None,
            node_memory: None,
            memory: "1Gi".parse().unwrap(),
            jdk: "openj9-25".parse().unwrap(),
            jvm: String::new(),
            json: false,
        };
        let options = JvmOptionSet::from_words(["-Xgcpolicy:balanced", "-XX:+UseG1GC"]);
        let (document, text) = of_openj9(&asked, &options).unwrap();
        let first = text.lines().next().unwrap();
        assert_eq!(
            first,
            "OpenJ9 25 with 1Gi and 1 processor: balanced with a heap of 512Mi (initial 8Mi), \
             1 collector thread, common pool of 1"
        );
        let document = serde_json::to_value(document).unwrap();
        assert_eq!(document["flags"]["maxHeapSize"], 536_870_912);
        assert_eq!(document["flags"]["MaxHeapSize"], serde_json::Value::Null);
        assert_eq!(document["collector"], "balanced");
    }
}
