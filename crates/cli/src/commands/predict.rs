//! `loadline predict`: what the JVM would choose by itself in a container of this size.

use std::collections::BTreeMap;

use clap::Args;
use loadline_sizing::hotspot::node::Container;
use loadline_sizing::hotspot::{self, Ergonomics, Machine, Value};
use loadline_sizing::openj9::{self, Unheard};
use loadline_sizing::options::words;
use loadline_sizing::{Bytes, Cpus, Jdk, Options, Vm};
use schemars::JsonSchema;
use serde::Serialize;

use super::{json, print};
use crate::error::{Error, ErrorKind, Outcome};

/// What the JVM would choose by itself.
#[derive(Args)]
pub struct Predict {
    /// CPU limit: 1.5 or 1500m; without it --node counts.
    #[arg(
        long,
        visible_alias = "cpus",
        value_name = "CPUS",
        value_parser = limit,
        required_unless_present = "node"
    )]
    cpu: Option<Cpus>,
    /// CPUs of the host: what a container without a CPU limit sees, and the most that one with a
    /// limit does.
    #[arg(long, value_name = "CPUS", value_parser = clap::value_parser!(u32).range(1..=8192))]
    node: Option<u32>,
    /// Memory limit: 512Mi, 2Gi.
    #[arg(long, visible_alias = "mem", value_name = "SIZE")]
    memory: Bytes,
    /// JDK version: 17, 17.0.15, 8u412; with OpenJ9: openj9-25, semeru-21.
    #[arg(long, value_name = "VERSION")]
    jdk: Jdk,
    /// JVM options, as one text: '-XX:+UseG1GC -Xms64m'.
    #[arg(
        long,
        alias = "flags",
        value_name = "OPTIONS",
        allow_hyphen_values = true,
        default_value = ""
    )]
    jvm: String,
    /// Print JSON; `flags` has the JVM's names and units, as -XX:+PrintFlagsFinal or OpenJ9's GC log
    /// prints them.
    #[arg(long)]
    json: bool,
}

/// Least quota that the kernel takes: 1 ms of the period of 100 ms (sched/core.c,
/// min_cfs_quota_period).
const LEAST: Cpus = Cpus::from_millis(10);

fn limit(text: &str) -> Result<Cpus, String> {
    let cpu: Cpus = text.parse().map_err(|e| format!("{e}"))?;
    match cpu < LEAST {
        true => Err(format!(
            "`{text}` is too little CPU: the kernel takes no quota below {}m",
            LEAST.as_millis()
        )),
        false => Ok(cpu),
    }
}

/// Runs it.
pub fn run(arguments: &Predict) -> Result<Outcome, Error> {
    let words = words::environment(&arguments.jvm).map_err(|error| {
        Error::new(ErrorKind::Usage, format!("--jvm: {error}"))
            .hint("write options as in JAVA_TOOL_OPTIONS: '-XX:+UseG1GC -Xms64m'")
    })?;
    let options = Options::from_words(words);
    let (document, text) = match arguments.jdk.vm {
        Vm::HotSpot => of_hotspot(arguments, &options)?,
        Vm::OpenJ9 => of_openj9(arguments, &options)?,
    };
    let text = if arguments.json {
        json(&document)?
    } else {
        text
    };
    print(&text)?;
    Ok(Outcome::Done)
}

fn refused(refusal: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Usage,
        format!("the JVM would not start: {refusal}"),
    )
}

fn of_hotspot(arguments: &Predict, options: &Options) -> Result<(Document, String), Error> {
    let jdk = arguments.jdk;
    let machine = machine(arguments, jdk, options);
    let prediction = hotspot::predict(jdk, machine, options).map_err(|refusal| {
        refused(refusal).hint("java exits with 1 and the same reason; change --jvm")
    })?;
    if let Some(note) = hotspot::rests_on(jdk) {
        talk!("note: {note}");
    }
    let unknown = hotspot::refusal::unknown(options).join(" ");
    if !unknown.is_empty() {
        talk!(
            "note: not looked at: {unknown}; whether a JVM starts with it says `java {unknown} -version`"
        );
    }
    Ok((document(&prediction), as_text(&prediction)))
}

fn of_openj9(arguments: &Predict, options: &Options) -> Result<(Document, String), Error> {
    let jdk = arguments.jdk;
    let host = arguments.node.or(arguments.cpu.map(Cpus::ceil));
    let machine = Machine {
        memory: arguments.memory,
        cpus: openj9::processors(arguments.cpu, host.unwrap_or(1)),
    };
    let prediction = openj9::predict(jdk, machine, options).map_err(|refusal| match refusal {
        openj9::Refusal::LimitUnseen => Error::new(ErrorKind::Usage, format!("--jvm: {refusal}"))
            .hint("take the option out of --jvm"),
        refusal => refused(refusal).hint("java exits with 1 and the same reason; change --jvm"),
    })?;
    if let Some(note) = openj9::rests_on(jdk) {
        talk!("note: {note}");
    }
    for unheard in Unheard::among(options) {
        talk!("note: {unheard}");
    }
    let flags = prediction.flags();
    let text = openj9_text(&prediction);
    let document = Document {
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

fn openj9_text(prediction: &openj9::Ergonomics) -> String {
    let threads = prediction.gc_threads;
    let head = format!(
        "OpenJ9 {} with {} and {}: {} with a heap of {} (initial {}), {threads} collector thread{}, \
         common pool of {}\n",
        prediction.jdk.version,
        prediction.machine.memory,
        processors(prediction.machine),
        prediction.policy,
        prediction.heap.max,
        prediction.heap.initial,
        plural(threads),
        prediction.common_pool,
    );
    let flags = prediction.flags().into_iter();
    flags.fold(head, |text, (name, value)| {
        format!("{text}\n{name:<26} {value}")
    })
}

fn plural(count: u32) -> &'static str {
    match count {
        1 => "",
        _ => "s",
    }
}

fn processors(machine: Machine) -> String {
    format!("{} processor{}", machine.cpus, plural(machine.cpus))
}

/// The machine as this JVM sees it.
fn machine(arguments: &Predict, jdk: Jdk, options: &Options) -> Machine {
    let limited = arguments.cpu.map(Cpus::ceil).unwrap_or(1).max(1);
    let container = Container {
        memory: Some(arguments.memory),
        host_memory: arguments.memory,
        cpu: arguments.cpu,
        shares: None,
        cpus: arguments.node.unwrap_or(limited),
    };
    Machine {
        memory: arguments.memory,
        cpus: container.processors(jdk, options, container.cpus),
    }
}

/// What the JVM would choose, as JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Document {
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

fn values(flags: Vec<(&'static str, Value)>) -> BTreeMap<String, FlagValue> {
    let value = |value| match value {
        Value::Switch(value) => FlagValue::Switch(value),
        Value::Number(value) => FlagValue::Number(value),
    };
    let flags = flags.into_iter();
    flags
        .map(|(name, of)| (name.to_owned(), value(of)))
        .collect()
}

fn document(prediction: &Ergonomics) -> Document {
    let flags = prediction.flags().into_iter();
    Document {
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

fn as_text(prediction: &Ergonomics) -> String {
    let heap = &prediction.heap;
    let threads = prediction.gc_threads;
    let mut text = format!(
        "JDK {} with {} and {}: {} with a heap of {} (initial {}), {} + {} collector \
         threads, {} compiler threads, common pool of {}\n",
        prediction.jdk.version,
        prediction.machine.memory,
        processors(prediction.machine),
        prediction.collector,
        heap.max,
        heap.initial,
        threads.parallel,
        threads.concurrent,
        prediction.compilers.count,
        prediction.common_pool,
    );
    for flag in prediction.flags() {
        let name = flag.name;
        // HotSpot's way to say that there is no bound; the JSON keeps it.
        match flag.value {
            Value::Number(u64::MAX) => text.push_str(&format!("\n{name:<26} unlimited")),
            value => text.push_str(&format!("\n{name:<26} {value}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predict(memory: &str, cpu: &str, jdk: &str) -> Ergonomics {
        let machine = Machine::from_limits(memory.parse().unwrap(), cpu.parse().unwrap());
        let jdk = Jdk::hotspot(jdk.parse().unwrap());
        hotspot::predict(jdk, machine, &Options::none()).unwrap()
    }

    #[test]
    fn json_has_hotspots_names_and_units() {
        let document = document(&predict("512Mi", "1.5", "17"));
        let document = serde_json::to_value(document).unwrap();
        assert_eq!(document["processors"], 2);
        assert_eq!(document["flags"]["MaxHeapSize"], 134_217_728);
        assert_eq!(document["flags"]["UseSerialGC"], true);
        assert_eq!(document["flags"]["ThreadStackSize"], 1024);
    }

    #[test]
    fn without_a_cpu_limit_the_host_counts_and_with_one_it_bounds() {
        let of = |cpu: Option<&str>, node| {
            let asked = Predict {
                cpu: cpu.map(|c| c.parse().unwrap()),
                node,
                memory: "4Gi".parse().unwrap(),
                jdk: "25".parse().unwrap(),
                jvm: String::new(),
                json: false,
            };
            machine(&asked, asked.jdk, &Options::none()).cpus
        };
        assert_eq!(of(None, Some(64)), 64);
        assert_eq!(of(Some("1500m"), Some(64)), 2);
        assert_eq!(of(Some("8"), Some(4)), 4);
        assert_eq!(of(Some("8"), None), 8);
    }

    #[test]
    fn one_processor_is_one_and_no_bound_is_said() {
        let text = as_text(&predict("2Gi", "1", "17"));
        assert!(text.contains("and 1 processor: "), "{text}");
        assert!(
            text.contains("MaxMetaspaceSize           unlimited"),
            "{text}"
        );
        assert!(!text.contains(&u64::MAX.to_string()), "{text}");
    }

    #[test]
    fn text_begins_with_a_sentence() {
        let text = as_text(&predict("2Gi", "2", "25"));
        let first = text.lines().next().unwrap();
        assert_eq!(
            first,
            "JDK 25 with 2Gi and 2 processors: G1 with a heap of 512Mi (initial 32Mi), 2 + 1 collector threads, \
             2 compiler threads, common pool of 1"
        );
    }

    #[test]
    fn openj9_has_its_own_rule_and_names_and_says_what_it_would_ignore() {
        let asked = Predict {
            cpu: Some("1400m".parse().unwrap()),
            node: None,
            memory: "1Gi".parse().unwrap(),
            jdk: "openj9-25".parse().unwrap(),
            jvm: String::new(),
            json: false,
        };
        let options = Options::from_words(["-Xgcpolicy:balanced", "-XX:+UseG1GC"]);
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
