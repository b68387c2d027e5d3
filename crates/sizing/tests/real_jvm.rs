//! The emulator against JVMs on this machine, under real memory cgroups.
//!
//! A small fresh grid by default; `LOADLINE_GRID=full` runs all (some minutes): `LOADLINE_GRID=full
//! cargo test -p loadline-sizing --test real_jvm -- --nocapture`. Needs root, a v1 memory
//! controller and a JDK; prints SKIP otherwise.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use loadline_sizing::hotspot::{self, MachineSize};
use loadline_sizing::{Bytes, JdkRelease, JvmOptionSet};

/// None of these is in the recorded tables.
const MEMORY_MIB: &[u64] = &[
    72, 120, 180, 251, 299, 400, 504, 640, 900, 1400, 1800, 2500, 5000, 11_000,
];
const CPUS: &[u32] = &[1, 2, 4, 9, 10, 13, 17, 20, 40, 60, 72, 100];
const OPTIONS: &[&str] = &[
    "",
    "-XX:+UseSerialGC -XX:NewRatio=3",
    "-XX:+UseParallelGC -XX:MinRAMPercentage=60.5",
    "-XX:+UseG1GC -XX:MaxRAMPercentage=61.25",
    "-XX:+UseZGC -XX:MaxRAMPercentage=80",
    "-XX:+UseShenandoahGC -XX:InitialRAMPercentage=10",
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=24m",
    "-XX:+UseG1GC -XX:TieredStopAtLevel=3 -XX:MaxMetaspaceSize=77777k",
    "-Xint",
    "-Xmx47m -XX:+UseSerialGC -Xss256k",
    "-Xms20m -XX:+UseParallelGC -XX:ParallelGCThreads=2",
    "-XX:CICompilerCount=6 -XX:ReservedCodeCacheSize=241m",
    "-XX:+UseG1GC -Xmx55m -Xms55m -XX:MaxDirectMemorySize=7m",
    "-XX:+UseG1GC -XX:G1HeapRegionSize=4m -XX:NewRatio=4",
    "-XX:+AlwaysActAsServerClassMachine",
    "-XX:+NeverActAsServerClassMachine -XX:MaxRAM=700m",
    "-XX:+NeverActAsServerClassMachine",
    "-XX:+NeverActAsServerClassMachine -XX:MaxRAMPercentage=50",
    "-XX:+UseZGC -Xmx51m -XX:ConcGCThreads=1",
    "-XX:+UseShenandoahGC -XX:ConcGCThreads=3",
    "-XX:+UnlockExperimentalVMOptions -XX:+UseEpsilonGC -XX:MaxRAMPercentage=60",
    "-XX:+UseSerialGC -Xmn11m -Xmx50m",
];

fn jvms() -> Vec<PathBuf> {
    let set = std::env::var_os("LOADLINE_JVMS");
    let set = set.map(|paths| std::env::split_paths(&paths).collect::<Vec<_>>());
    set.unwrap_or_else(|| {
        let entries = std::fs::read_dir("/usr/lib/jvm")
            .into_iter()
            .flatten()
            .flatten();
        let homes = entries
            .map(|entry| entry.path())
            .filter(|path| !path.is_symlink());
        // The prediction is HotSpot's.
        let homes = homes.filter(|home| !home.join("lib/j9vm").exists());
        homes.filter(|home| home.join("release").exists()).collect()
    })
}

fn jdk(home: &Path) -> Option<JdkRelease> {
    JdkRelease::from_release(&std::fs::read_to_string(home.join("release")).ok()?)
}

/// One memory cgroup a size; removed at the end.
struct Groups(PathBuf);

impl Groups {
    fn new() -> Option<Self> {
        let root =
            Path::new("/sys/fs/cgroup/memory").join(format!("loadline-jvm-{}", std::process::id()));
        std::fs::create_dir(&root).ok()?;
        Some(Self(root))
    }

    fn limited(&self, mib: u64) -> Option<PathBuf> {
        let group = self.0.join(mib.to_string());
        std::fs::create_dir_all(&group).ok()?;
        std::fs::write(group.join("memory.limit_in_bytes"), (mib << 20).to_string()).ok()?;
        Some(group)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for entry in std::fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let _ = std::fs::remove_dir(entry.path());
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Flags as the JVM prints them. `None` when it did not start.
fn print_flags(
    home: &Path,
    group: &Path,
    words: &[String],
) -> Result<BTreeMap<String, String>, String> {
    let script = r#"echo $$ > "$1/cgroup.procs"; shift; exec "$@""#;
    let output = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(group)
        .arg(home.join("bin/java"))
        .args(words)
        .args(["-XX:+PrintFlagsFinal", "-version"])
        .output()
        .expect("sh exists");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(text);
    }
    let flag = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.len() > 3 && words[2] == "=").then(|| (words[1].to_owned(), words[3].to_owned()))
    };
    Ok(text.lines().filter_map(flag).collect())
}

#[test]
fn predicts_every_flag_of_the_jvms_here() {
    let name = "predicts_every_flag_of_the_jvms_here";
    let jvms = jvms();
    if jvms.is_empty() {
        println!("SKIP {name}: no JDK below /usr/lib/jvm (set LOADLINE_JVMS)");
        return;
    }
    let Some(groups) = Groups::new() else {
        println!("SKIP {name}: no writable v1 memory cgroup (needs root)");
        return;
    };
    let is_full = std::env::var("LOADLINE_GRID").is_ok_and(|value| value == "full");
    let mut runs = 0;
    let mut flags = 0;
    let mut wrong = Vec::new();
    for home in &jvms {
        let Some(jdk) = jdk(home) else { continue };
        let cells = MEMORY_MIB
            .iter()
            .flat_map(|m| CPUS.iter().map(move |c| (*m, *c)));
        let cells = cells.flat_map(|(m, c)| OPTIONS.iter().map(move |o| (m, c, *o)));
        for (i, (memory, cpus, options)) in cells.enumerate() {
            // A prime step touches every option set, size and count in the small grid.
            if !is_full && i % 53 != 0 {
                continue;
            }
            let group = groups
                .limited(memory)
                .expect("a child of a group just made");
            let words: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
            let machine = MachineSize {
                memory: Bytes::from_mib(memory),
                cpus,
            };
            let count = format!("-XX:ActiveProcessorCount={cpus}");
            let all = words.iter().cloned().chain([count]).collect::<Vec<_>>();
            let predicted = hotspot::predict(jdk, machine, &JvmOptionSet::from_words(all.clone()));
            runs += 1;
            let cell = format!("{jdk} {memory}Mi {cpus} {options}");
            match (print_flags(home, &group, &all), predicted) {
                (Err(_), Err(_)) => {}
                (Ok(_), Err(refusal)) => {
                    wrong.push(format!("{cell}: started, predicted: {refusal}"))
                }
                (Err(text), Ok(_)) => wrong.push(format!("{cell}: did not start: {text}")),
                (Ok(real), Ok(predicted)) => {
                    for flag in predicted.printed_flags() {
                        flags += 1;
                        let got = flag.value.to_string();
                        if real.get(flag.name) != Some(&got) {
                            wrong.push(format!(
                                "{cell}: {} is {:?}, predicted {got}",
                                flag.name,
                                real.get(flag.name)
                            ));
                        }
                    }
                }
            }
        }
    }
    println!(
        "{name}: {runs} starts, {flags} flags compared, {} differ",
        wrong.len()
    );
    assert!(
        wrong.is_empty(),
        "{}",
        wrong[..wrong.len().min(60)].join("\n")
    );
}
