//! `calc`: what every launcher would do with the same container, side by side.

use std::fmt::Write as _;

use loadline_sizing::compat::{calculator, fabric8, openj9};
use loadline_sizing::decision::{self, Input};
use loadline_sizing::hotspot::{self, Machine};
use loadline_sizing::limits::{Found, Host, Limits, Quota};
use loadline_sizing::profile::Profile;
use loadline_sizing::sight::Sight;
use loadline_sizing::{Bytes, Cpus, Jdk, Options, Version};

/// What to compute with.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The memory limit.
    pub memory: Bytes,
    /// The CPU limit.
    pub cpus: Cpus,
    /// The JDK.
    pub jdk: Version,
    /// Loaded classes.
    pub classes: u64,
    /// Threads.
    pub threads: u64,
}

/// One launcher's row.
struct Row {
    name: &'static str,
    answer: String,
    leaves_out: String,
}

/// The table.
pub fn table(case: &Case) -> String {
    let rows = [ours(case), plain(case), paketo(case), cloud_foundry(case), fabric8(case), openj9(case)];
    let mut page = format!(
        "limit {}, {} CPUs, JDK {}, {} classes, {} threads\n",
        case.memory, case.cpus, case.jdk, case.classes, case.threads
    );
    for row in rows {
        // Writing to a String cannot fail.
        let _ = write!(page, "\n{}\n  {}\n", row.name, row.answer);
        if !row.leaves_out.is_empty() {
            let _ = writeln!(page, "  leaves out: {}", row.leaves_out);
        }
    }
    page
}

fn ours(case: &Case) -> Row {
    let limits = limits(case);
    let sight = Sight {
        memory: case.memory,
        cpus: case.cpus.ceil().max(1),
        blindness: Vec::new(),
    };
    let profile = Profile {
        classes: Some(case.classes),
        ..Profile::default()
    };
    let decision = decision::decide(&Input {
        jdk: Jdk::hotspot(case.jdk),
        limits: &limits,
        sight: &sight,
        options: &Options::none(),
        profile: Some(&profile),
    });
    let options: Vec<&str> = decision.options.iter().map(|c| c.option.as_str()).collect();
    let leaves_out = "nothing by itself; without a measured profile the regions are those of a typical service";
    Row {
        name: "loadline-launch",
        answer: options.join(" "),
        leaves_out: decision.warnings.first().cloned().unwrap_or_else(|| leaves_out.to_owned()),
    }
}

/// A container with these limits and nothing else known.
fn limits(case: &Case) -> Limits {
    Limits {
        host: Host {
            memory: Bytes::from_bytes(u64::MAX),
            affinity: case.cpus.ceil().max(1),
            address_space: None,
            processes: None,
        },
        memory: Some(Found::new(case.memory, "--memory")),
        memory_high: None,
        swap: None,
        quota: Some(Found::new(
            Quota {
                quota_us: u64::from(case.cpus.as_millis()) * 100,
                period_us: 100_000,
            },
            "--cpus",
        )),
        shares: None,
        weight: None,
        cpuset: None,
        pids: None,
        notes: Vec::new(),
    }
}

fn plain(case: &Case) -> Row {
    let machine = Machine::from_limits(case.memory, case.cpus);
    let answer = match hotspot::predict(Jdk::hotspot(case.jdk), machine, &Options::none()) {
        Ok(e) => format!("-Xmx{} -XX:+{}", e.heap.max.jvm(), e.collector.flag()),
        Err(refusal) => refusal.to_string(),
    };
    Row {
        name: "java by itself",
        answer,
        leaves_out: "every native region: a quarter (small: half) of the limit".to_owned(),
    }
}

fn calculator_row(name: &'static str, flavour: calculator::Flavour, case: &Case) -> Row {
    let options = Options::none();
    let input = calculator::Input {
        total: case.memory,
        classes: case.classes,
        threads: case.threads,
        headroom_percent: 0,
        options: &options,
    };
    match calculator::calculate(flavour, &input) {
        Ok(answer) => Row {
            name,
            answer: answer.options.join(" "),
            leaves_out: answer.leaves_out.to_owned(),
        },
        Err(refusal) => Row {
            name,
            answer: format!("refuses to start: {refusal}"),
            leaves_out: String::new(),
        },
    }
}

fn paketo(case: &Case) -> Row {
    calculator_row("Paketo memory calculator", calculator::Flavour::Paketo, case)
}

fn cloud_foundry(case: &Case) -> Row {
    calculator_row("Cloud Foundry memory calculator", calculator::Flavour::CloudFoundry, case)
}

fn fabric8(case: &Case) -> Row {
    let answer = fabric8::calculate(&fabric8::Input {
        limit: Some(case.memory),
        cpus: Some(case.cpus),
        jdk: case.jdk,
        max_ratio: None,
        init_ratio: None,
        options: &Options::none(),
    });
    Row {
        name: "fabric8 run-java.sh",
        answer: answer.options.join(" "),
        leaves_out: answer.leaves_out.to_owned(),
    }
}

fn openj9(case: &Case) -> Row {
    let answer = openj9::calculate(case.memory);
    Row {
        name: "OpenJ9 by itself",
        answer: answer.options.join(" "),
        leaves_out: answer.leaves_out.to_owned(),
    }
}
