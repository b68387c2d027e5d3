//! `loadline predict`: what the JVM would choose by itself in a container of this size.

use std::collections::BTreeMap;

use clap::Args;
use loadline_sizing::hotspot::node::Container;
use loadline_sizing::hotspot::{self, Ergonomics, Machine, Value};
use loadline_sizing::options::words;
use loadline_sizing::{Bytes, Cpus, Jdk, Options, Version};
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
    /// JDK version: 17, 17.0.15, 8u412.
    #[arg(long, value_name = "VERSION")]
    jdk: Version,
    /// JVM options, as one text: '-XX:+UseG1GC -Xms64m'.
    #[arg(
        long,
        alias = "flags",
        value_name = "OPTIONS",
        allow_hyphen_values = true,
        default_value = ""
    )]
    jvm: String,
    /// Print JSON; `flags` has HotSpot's names and units, as -XX:+PrintFlagsFinal prints them.
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
    let jdk = Jdk::hotspot(arguments.jdk);
    let machine = machine(arguments, jdk, &options);
    let prediction = hotspot::predict(jdk, machine, &options).map_err(|refusal| {
        Error::new(
            ErrorKind::Usage,
            format!("the JVM would not start: {refusal}"),
        )
        .hint("java exits with 1 and the same reason; change --jvm")
    })?;
    if let Some(note) = hotspot::rests_on(jdk) {
        talk!("note: {note}");
    }
    let text = if arguments.json {
        json(&document(&prediction))?
    } else {
        as_text(&prediction)
    };
    print(&text)?;
    Ok(Outcome::Done)
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
    /// HotSpot's names and units, as -XX:+PrintFlagsFinal prints them.
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

fn document(prediction: &Ergonomics) -> Document {
    let value = |value| match value {
        Value::Switch(value) => FlagValue::Switch(value),
        Value::Number(value) => FlagValue::Number(value),
    };
    let flags = prediction.flags().into_iter();
    Document {
        schema: 1,
        jdk: prediction.jdk.version.to_string(),
        memory_bytes: prediction.machine.memory.as_bytes(),
        processors: prediction.machine.cpus,
        collector: prediction.collector.to_string(),
        common_pool_parallelism: prediction.common_pool,
        virtual_thread_carriers: prediction.virtual_thread_carriers,
        flags: flags
            .map(|flag| (flag.name.to_owned(), value(flag.value)))
            .collect(),
    }
}

fn as_text(prediction: &Ergonomics) -> String {
    let heap = &prediction.heap;
    let threads = prediction.gc_threads;
    let mut text = format!(
        "JDK {} with {} and {} processor{}: {} with a heap of {} (initial {}), {} + {} collector \
         threads, {} compiler threads, common pool of {}\n",
        prediction.jdk.version,
        prediction.machine.memory,
        prediction.machine.cpus,
        if prediction.machine.cpus == 1 {
            ""
        } else {
            "s"
        },
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
            machine(&asked, Jdk::hotspot(asked.jdk), &Options::none()).cpus
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
}
