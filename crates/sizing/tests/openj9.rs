//! OpenJ9's ergonomics against rows that a real OpenJ9 printed, and against an installed one.
//!
//! `LOADLINE_GRID=full` runs the whole grid, `LOADLINE_UPDATE=1` also writes it:
//! `LOADLINE_GRID=full LOADLINE_UPDATE=1 cargo test -p loadline-sizing --test openj9 --
//! --nocapture`. A real run needs root, v1 controllers of memory and CPU and an OpenJ9; otherwise
//! it prints SKIP.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use loadline_sizing::hotspot::MachineSize;
use loadline_sizing::openj9::{self, GcPolicy};
use loadline_sizing::{Bytes, Cpus, JavaVersion, JdkRelease, JvmOptionSet, Vm};

/// What the JVM prints that is predicted.
const COLUMNS: [&str; 8] = [
    "gcPolicy",
    "maxHeapSize",
    "initialHeapSize",
    "-Xmnx",
    "regionSize",
    "gcthreads",
    "compressedRefs",
    "compressedRefsShift",
];
const MEMORY_MIB: &[u64] = &[
    64, 100, 256, 333, 512, 777, 1000, 1024, 1536, 2048, 2500, 4096, 8192, 16_384, 20_000,
];
/// Thousandths of a CPU.
const LIMITS: &[u32] = &[100, 499, 500, 1400, 1499, 1500, 1600, 2000];
const OPTIONS: &[&str] = &[
    "-XX:MaxRAMPercentage=60",
    "-XX:MaxRAMPercentage=33.3",
    "-XX:MaxRAMPercentage=90 -Xgcpolicy:balanced",
    "-XX:InitialRAMPercentage=20",
    "-XX:InitialRAMPercentage=80",
    "-XX:InitialRAMPercentage=33.3 -Xgcpolicy:balanced",
    "-XX:InitialRAMPercentage=33.3 -Xgcpolicy:optavgpause",
    "-XX:MaxRAMPercentage=60 -XX:InitialRAMPercentage=30 -Xgcpolicy:nogc",
    "-XX:MaxRAMPercentage=60 -XX:InitialRAMPercentage=70",
    "-XX:MaxRAMPercentage=101",
    "-XX:MaxRAMPercentage=60 -Xmx100m",
    "-Xmx100001k",
    "-Xmx100001k -Xgcpolicy:balanced",
    "-XX:MaxHeapSize=40m -Xms40m",
    "-Xms200m",
    "-XX:InitialHeapSize=30m -Xgcpolicy:balanced",
    "-Xmx100m -Xms200m",
    "-Xmx2g -Xgcpolicy:balanced",
    "-Xmx2049m -Xgcpolicy:balanced",
    "-Xmn20m",
    "-Xmn50m -Xms100m",
    "-Xmn50001k -Xmx100m",
    "-Xmn200m -Xmx150m",
    "-Xgcthreads3",
    "-XX:ParallelGCThreads=7 -Xgcthreads3",
    "-Xgcmaxthreads5 -XX:ActiveProcessorCount=8",
    "-Xgcthreads0",
    "-Xnocompressedrefs",
    "-XX:-UseCompressedOops",
    "-Xmx33g",
    "-Xmx58g",
    "-Xtune:throughput",
    "-Xtune:virtualized",
    "-Xgcpolicy:optgencon",
    "-XX:+UseG1GC -XX:MinRAMPercentage=70 -XX:MaxMetaspaceSize=64m",
    "-XX:+UseSerialGC -XX:NewRatio=2 -XX:ReservedCodeCacheSize=32m",
    "-XX:+UseParallelGC -XX:MaxRAM=300m -XX:MaxNewSize=10m",
];

/// A cell of the grid: the JVM's inputs.
#[derive(Debug, Clone, PartialEq)]
struct Cell {
    memory_mib: u64,
    /// Thousandths of a CPU; 0 without a limit.
    limit: u32,
    host_cpus: u32,
    options: String,
}

impl Cell {
    fn ergonomics(&self) -> Result<openj9::OpenJ9Ergonomics, openj9::OpenJ9Refusal> {
        let limit = (self.limit > 0).then(|| Cpus::from_millis(self.limit));
        let machine = MachineSize {
            memory: Bytes::from_mib(self.memory_mib),
            cpus: openj9::count_processors(limit, self.host_cpus),
        };
        let jdk = JdkRelease {
            version: JavaVersion::from_feature(25),
            vm: Vm::OpenJ9,
        };
        let options = JvmOptionSet::from_words(self.options.split_whitespace());
        openj9::predict(jdk, machine, &options)
    }

    /// The prediction as the JVM prints it; empty if it would not start.
    fn predicted(&self) -> Vec<String> {
        let Ok(predicted) = self.ergonomics() else {
            return vec![String::new(); COLUMNS.len()];
        };
        let mut of: BTreeMap<&str, String> = predicted
            .predicted_flags()
            .into_iter()
            .map(|(name, value)| (name, value.to_string()))
            .collect();
        of.insert("gcPolicy", predicted.policy.to_string());
        let value = |name: &&str| of.remove(*name).unwrap_or_default();
        COLUMNS.iter().map(value).collect()
    }

    fn row(&self) -> [String; 4] {
        [
            self.memory_mib.to_string(),
            self.limit.to_string(),
            self.host_cpus.to_string(),
            self.options.clone(),
        ]
    }

    fn of(row: &[&str]) -> Self {
        Self {
            memory_mib: row[0].parse().expect("a number"),
            limit: row[1].parse().expect("a number"),
            host_cpus: row[2].parse().expect("a number"),
            options: row[3].to_owned(),
        }
    }
}

fn grid(host_cpus: u32) -> Vec<Cell> {
    let mut cells = vec![];
    let mut add = |memory_mib, limit, options: String| {
        cells.push(Cell {
            memory_mib,
            limit,
            host_cpus,
            options,
        });
    };
    for memory in MEMORY_MIB {
        for policy in GcPolicy::ALL {
            add(*memory, 0, format!("-Xgcpolicy:{policy}"));
        }
    }
    for limit in LIMITS {
        add(512, *limit, String::new());
        add(3000, *limit, "-Xgcpolicy:balanced".to_owned());
    }
    for count in [1, 3, 8, 16, 64, 65, 128] {
        for policy in [GcPolicy::Gencon, GcPolicy::Balanced, GcPolicy::OptThruput] {
            let options = format!("-XX:ActiveProcessorCount={count} -Xgcpolicy:{policy}");
            add(4096, 0, options);
        }
    }
    for options in OPTIONS {
        for memory in [96, 512, 3000, 16_384] {
            add(memory, 0, (*options).to_owned());
        }
    }
    cells
}

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/openj9-ergonomics.csv")
}

#[test]
fn equals_every_row_that_a_real_openj9_printed() {
    let text = std::fs::read_to_string(recorded()).expect("recorded data");
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip(1)
        .map(|l| l.split(',').collect())
        .collect();
    let mut wrong = vec![];
    for row in &rows {
        let predicted = Cell::of(&row[1..5]).predicted();
        if predicted != row[5..] {
            wrong.push(format!("{row:?}: predicted {predicted:?}"));
        }
    }
    assert!(rows.len() >= 240, "{} rows", rows.len());
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The code cache and the threads are not in the log: they were counted in what `-Xjit:verbose` says.
#[test]
fn equals_every_row_of_the_compiler_that_a_real_openj9_printed() {
    let path = recorded().with_file_name("openj9-compilers.csv");
    let text = std::fs::read_to_string(path).expect("recorded data");
    let mut wrong = vec![];
    for row in text.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let cell = Cell {
            memory_mib: cells[1].parse().unwrap(),
            limit: 0,
            host_cpus: cells[2].parse().unwrap(),
            options: cells[3].to_owned(),
        };
        let of = cell
            .ergonomics()
            .expect("the recorded JVM started")
            .compilers;
        let predicted = [of.code_cache.as_bytes().to_string(), of.threads.to_string()];
        if predicted != cells[4..] {
            wrong.push(format!("{row}: predicted {predicted:?}"));
        }
    }
    assert!(text.lines().count() > 100, "{text}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An OpenJ9 below /usr/lib/jvm.
fn home() -> Option<PathBuf> {
    let entries = std::fs::read_dir("/usr/lib/jvm").ok()?.flatten();
    let mut homes: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    homes.sort();
    homes
        .into_iter()
        .find(|home| home.join("lib/j9vm").exists())
}

/// Groups of a memory and a CPU limit; removed at the end.
struct Groups(Vec<PathBuf>);

impl Groups {
    fn make(&mut self, controller: &str, name: &str, file: &str, value: &str) -> Option<PathBuf> {
        let name = format!("loadline-openj9-{}-{name}", std::process::id());
        let group = Path::new("/sys/fs/cgroup").join(controller).join(name);
        if std::fs::create_dir(&group).is_ok() {
            self.0.push(group.clone());
        }
        std::fs::write(group.join(file), value).ok()?;
        Some(group)
    }

    /// Starts it as a container of v1 has it: its groups are all that it sees of the hierarchy.
    fn start(&mut self, home: &Path, cell: &Cell, log: &Path) -> Option<Output> {
        let bytes = (cell.memory_mib << 20).to_string();
        let name = format!("m{}", cell.memory_mib);
        let memory = self.make("memory", &name, "memory.limit_in_bytes", &bytes)?;
        let quota = match cell.limit {
            0 => "-1".to_owned(),
            millis => (millis * 100).to_string(),
        };
        let cpu = self.make(
            "cpu",
            &format!("c{}", cell.limit),
            "cpu.cfs_quota_us",
            &quota,
        )?;
        let script = r#"echo $$ > "$1/cgroup.procs"; echo $$ > "$2/cgroup.procs"
            mount --bind "$1" /sys/fs/cgroup/memory && mount --bind "$2" /sys/fs/cgroup/cpu || exit 99
            shift 2; exec "$@""#;
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, "sh"]);
        command.arg(memory).arg(cpu).arg(home.join("bin/java"));
        command.args(cell.options.split_whitespace());
        command.arg(format!("-Xverbosegclog:{}", log.display()));
        let output = command.args(["-verbose:sizes", "-version"]).output().ok()?;
        (output.status.code() != Some(99)).then_some(output)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for group in &self.0 {
            let _ = std::fs::remove_dir(group);
        }
    }
}

/// What it printed, in the order of the columns; empty where it did not start.
fn printed(output: &Output, log: &Path) -> Vec<String> {
    if !output.status.success() {
        return vec![String::new(); COLUMNS.len()];
    }
    let log = std::fs::read_to_string(log).unwrap_or_default();
    let attribute = |name: &str| {
        let rest = log.split_once(&format!("name=\"{name}\" value=\""))?.1;
        let value = rest.split_once('"')?.0;
        let hexadecimal = value.strip_prefix("0x");
        let number = hexadecimal.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        Some(number.map_or(value.replace("-Xgcpolicy:", ""), |n| n.to_string()))
    };
    let sizes = String::from_utf8_lossy(&output.stderr).into_owned();
    let size = |name: &str| {
        let mut words = sizes.split_whitespace();
        let word = words.find_map(|word| word.strip_prefix(name))?;
        let size: Bytes = word.parse().ok()?;
        Some(size.as_bytes().to_string())
    };
    let is_gencon = attribute("gcPolicy").as_deref() == Some("gencon");
    let value = |name: &&str| match *name {
        "-Xmnx" => is_gencon.then(|| size(name)).flatten(),
        name => attribute(name),
    };
    COLUMNS
        .iter()
        .map(|c| value(c).unwrap_or_default())
        .collect()
}

/// The build in its own words: `cf92035774`.
fn build(home: &Path) -> String {
    let output = Command::new(home.join("bin/java")).arg("-version").output();
    let text = output.map(|of| String::from_utf8_lossy(&of.stderr).into_owned());
    let text = text.unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("OpenJ9 "));
    let build = line.and_then(|line| line.split_whitespace().last());
    build.unwrap_or("unknown").to_owned()
}

#[test]
fn predicts_what_the_openj9_here_chooses() {
    let name = "predicts_what_the_openj9_here_chooses";
    let Some(home) = home() else {
        println!("SKIP {name}: no OpenJ9 below /usr/lib/jvm");
        return;
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let cells = grid(u32::try_from(cpus).expect("a machine's processors"));
    let is_full = std::env::var("LOADLINE_GRID").is_ok_and(|value| value == "full");
    let log = std::env::temp_dir().join(format!("loadline-openj9-{}.log", std::process::id()));
    let mut groups = Groups(vec![]);
    let mut lines = vec![];
    let mut wrong = vec![];
    let build = build(&home);
    // A prime step touches every part of the grid in the small one.
    let step = if is_full { 1 } else { 23 };
    for cell in cells.iter().step_by(step) {
        let _ = std::fs::remove_file(&log);
        let Some(output) = groups.start(&home, cell, &log) else {
            println!(
                "SKIP {name}: no writable v1 groups of memory and CPU, or no mounts (needs root)"
            );
            return;
        };
        let real = printed(&output, &log);
        let predicted = cell.predicted();
        if real != predicted {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let said = said
                .lines()
                .filter(|line| line.starts_with("JVM"))
                .collect::<Vec<_>>();
            wrong.push(format!(
                "{cell:?}: {real:?}, predicted {predicted:?} {said:?}"
            ));
        }
        lines.push(
            [vec![format!("25 {build}")], cell.row().to_vec(), real]
                .concat()
                .join(","),
        );
    }
    let _ = std::fs::remove_file(&log);
    if is_full && std::env::var("LOADLINE_UPDATE").is_ok() {
        let header = "openj9,memory_mib,cpu_limit_millis,host_cpus,options";
        let text = format!("{header},{}\n{}\n", COLUMNS.join(","), lines.join("\n"));
        std::fs::write(recorded(), text).expect("a writable table");
    }
    println!("{name}: {} starts, {} differ", lines.len(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// OpenJ9 can list the `-XX:` options that it knows.
#[test]
fn options_that_are_called_its_own_are_taken_and_hotspots_are_not() {
    let name = "options_that_are_called_its_own_are_taken_and_hotspots_are_not";
    let Some(home) = home() else {
        println!("SKIP {name}: no OpenJ9 below /usr/lib/jvm");
        return;
    };
    let starts = |strict: &str, options: &[String]| {
        let mut command = Command::new(home.join("bin/java"));
        command.arg(strict).args(options).arg("-version");
        let output = command.output().expect("java starts");
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let value = |name: &&str| match *name {
        "HeapDumpPath" => "-XX:HeapDumpPath=/tmp/heap".to_owned(),
        "OnOutOfMemoryError" => "-XX:OnOutOfMemoryError=true".to_owned(),
        name if name.ends_with("Percentage") => format!("-XX:{name}=50"),
        name if name.ends_with("Size") || name.ends_with("Limit") || name == "codecachetotal" => {
            format!("-XX:{name}=64m")
        }
        name if name.ends_with("Threads") || name.ends_with("Count") => format!("-XX:{name}=2"),
        name => format!("-XX:+{name}"),
    };
    let options: Vec<String> = openj9::TAKEN
        .iter()
        .filter(|name| **name != "UseJITServer")
        .map(value)
        .collect();
    let strict = "-XX:-IgnoreUnrecognizedXXColonOptions";
    let (is_started, said) = starts(strict, &options);
    assert!(is_started, "{said}");
    for option in [
        "-XX:+UseG1GC",
        "-XX:MinRAMPercentage=50",
        "-XX:MaxMetaspaceSize=64m",
        "-XX:ReservedCodeCacheSize=64m",
        "-XX:NativeMemoryTracking=summary",
    ] {
        let option = [option.to_owned()];
        let (is_started, said) = starts(strict, &option);
        assert!(
            !is_started && said.contains(&option[0]),
            "{option:?}: {said}"
        );
        let (is_started, said) = starts("-XX:+IgnoreUnrecognizedXXColonOptions", &option);
        assert!(
            is_started && !said.contains(&option[0]),
            "{option:?}: {said}"
        );
    }
}
