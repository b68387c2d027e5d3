//! `calc`: what every launcher would do with the same container, side by side.

use std::fmt::Write as _;

use loadline_sizing::compat::{LauncherOutput, calculator, fabric8, openj9};
use loadline_sizing::decision::{self, DecisionInput};
use loadline_sizing::hotspot::{self, MachineSize};
use loadline_sizing::limits::{ContainerLimits, Quota, SourcedValue, SystemCallFacts};
use loadline_sizing::profile::AppProfile;
use loadline_sizing::sight::PerceivedMachine;
use loadline_sizing::{Bytes, Cpus, JavaVersion, JdkRelease, JvmOptionSet};

#[derive(Debug, Clone, Copy)]
pub struct CalculatorCase {
    pub memory: Bytes,
    pub cpus: Cpus,
    pub jdk: JavaVersion,
    pub classes: u64,
    pub threads: u64,
}

struct LauncherRow {
    name: &'static str,
    answer: String,
    leaves_out: String,
}

pub fn comparison_table(case: &CalculatorCase) -> String {
    use calculator::Flavour::{CloudFoundry, Paketo};
    let rows = [
        own_row(case),
        plain_row(case),
        calculator_row("Paketo memory calculator", Paketo, case),
        calculator_row("Cloud Foundry memory calculator", CloudFoundry, case),
        fabric8_row(case),
        openj9_row(case),
    ];
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

fn own_row(case: &CalculatorCase) -> LauncherRow {
    let limits = case_limits(case);
    let sight = PerceivedMachine {
        memory: case.memory,
        cpus: case.cpus.ceil().max(1),
        blindness: Vec::new(),
    };
    let profile = AppProfile {
        classes: Some(case.classes),
        ..AppProfile::default()
    };
    let decision = decision::decide_launch(&DecisionInput {
        jdk: JdkRelease::for_hotspot(case.jdk),
        limits: &limits,
        sight: &sight,
        options: &JvmOptionSet::none(),
        profile: Some(&profile),
    });
    let options: Vec<&str> = decision.options.iter().map(|c| c.option.as_str()).collect();
    let first = decision.warnings.first().cloned();
    let leaves_out =
        "nothing; without a measured profile the regions are those of a typical service";
    LauncherRow {
        name: "loadline-launch",
        answer: options.join(" "),
        leaves_out: first.unwrap_or_else(|| leaves_out.to_owned()),
    }
}

fn case_limits(case: &CalculatorCase) -> ContainerLimits {
    ContainerLimits {
        host: SystemCallFacts {
            memory: Bytes::from_bytes(u64::MAX),
            affinity: case.cpus.ceil().max(1),
            address_space: None,
            processes: None,
        },
        memory: Some(SourcedValue::new(case.memory, "--memory")),
        memory_high: None,
        swap: None,
        quota: Some(SourcedValue::new(
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

fn plain_row(case: &CalculatorCase) -> LauncherRow {
    let machine = MachineSize::from_limits(case.memory, case.cpus);
    let jdk = JdkRelease::for_hotspot(case.jdk);
    let answer = match hotspot::predict(jdk, machine, &JvmOptionSet::none()) {
        Ok(e) => {
            let (heap, collector) = (e.heap.max.to_jvm_size(), e.collector.flag());
            format!("-Xmx{heap} -XX:+{collector}")
        }
        Err(refusal) => refusal.to_string(),
    };
    LauncherRow {
        name: "java alone",
        answer,
        leaves_out: "every native region: a quarter (small: half) of the limit".to_owned(),
    }
}

fn calculator_row(
    name: &'static str,
    flavour: calculator::Flavour,
    case: &CalculatorCase,
) -> LauncherRow {
    let options = JvmOptionSet::none();
    let input = calculator::CalculatorInput {
        total: case.memory,
        classes: case.classes,
        threads: case.threads,
        headroom_percent: 0,
        options: &options,
    };
    match calculator::calculate_memory(flavour, &input) {
        Ok(answer) => output_row(name, &answer),
        Err(refusal) => LauncherRow {
            name,
            answer: format!("refuses to start: {refusal}"),
            leaves_out: String::new(),
        },
    }
}

fn fabric8_row(case: &CalculatorCase) -> LauncherRow {
    let answer = fabric8::calculate(&fabric8::Fabric8Input {
        limit: Some(case.memory),
        cpus: Some(case.cpus),
        jdk: case.jdk,
        max_ratio: None,
        init_ratio: None,
        options: &JvmOptionSet::none(),
    });
    output_row("fabric8 run-java.sh", &answer)
}

fn openj9_row(case: &CalculatorCase) -> LauncherRow {
    output_row("OpenJ9 alone", &openj9::calculate_max_heap(case.memory))
}

fn output_row(name: &'static str, output: &LauncherOutput) -> LauncherRow {
    LauncherRow {
        name,
        answer: output.options.join(" "),
        leaves_out: output.leaves_out.to_owned(),
    }
}
