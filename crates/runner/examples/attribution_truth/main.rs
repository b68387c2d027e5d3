//! Checks the attribution of pauses against what the scheduler itself says.
//!
//! Runs the allocation workload throttled, with a `sched_switch` trace as the truth, and samples
//! its cgroup as trials do: at 1 kHz, phase-locked, and (1 kHz samples thinned out) once a second.
//! Each pause over 50 ms is then explained four times: from the trace and from each kind of sample.
//! Needs root, tracefs and both workloads built; says SKIP and why where it cannot run.
//!
//! `cargo xtask attribution-truth [SECONDS [CPUS,CPUS... [GC THREADS [JDK,JDK... [DIRECTORY]]]]]`; the
//! runs are kept in the directory. `cargo xtask attribution-truth DIRECTORY` judges runs that were kept, and
//! lists the pauses that samples and trace explain differently.

#![allow(clippy::print_stdout)]

mod compare;
mod kept;
mod scene;
mod trace;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use compare::Score;
use loadline_jvm::detect::{DetectedJdks, InstalledJdk, JdkPlaces};
use loadline_sizing::Cpus;

/// The JDKs of the promise.
const JDKS: [&str; 3] = ["17", "25", "openj9-25"];

/// The runs: length, limits, GC threads.
struct Wanted {
    seconds: u64,
    limits: Vec<Cpus>,
    gc_threads: u32,
    /// Names of JDKs.
    jdks: Vec<String>,
    /// Where the runs are kept.
    keep: Option<PathBuf>,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if let Some(directory) = std::env::args_os().nth(1).filter(|a| Path::new(a).is_dir()) {
        return judge_again(Path::new(&directory));
    }
    let wanted = wanted()?;
    if let Some(reason) = scene::missing() {
        println!("SKIP attribution-truth: {reason}");
        return Ok(ExitCode::SUCCESS);
    }
    let tracer = match trace::Tracer::open() {
        Ok(tracer) => tracer,
        Err(reason) => {
            println!("SKIP attribution-truth: {reason}");
            return Ok(ExitCode::SUCCESS);
        }
    };
    let machine = std::thread::available_parallelism()?.get();
    println!("{}", compare::HEADER);
    let (mut all, mut control) = (Vec::new(), Vec::new());
    for (name, jdk) in jdks(&wanted.jdks) {
        for limit in &wanted.limits {
            let seen = scene::run(&tracer, &jdk, *limit, wanted.gc_threads, wanted.seconds)?;
            if let Some(directory) = &wanted.keep {
                kept::write(directory, &name, *limit, &seen)?;
            }
            let score = Score::of(&seen, machine);
            println!("{}", score.row(&name, *limit));
            if limit.as_f64() >= machine as f64 {
                control.push(score)
            } else {
                all.push(score)
            }
        }
    }
    Ok(compare::verdict(&all, &control))
}

/// The same for runs that were kept.
fn judge_again(directory: &Path) -> Result<ExitCode, Box<dyn Error>> {
    let machine = std::thread::available_parallelism()?.get();
    println!("{}", compare::HEADER);
    let (mut all, mut control) = (Vec::new(), Vec::new());
    for (name, limit, seen) in kept::read(directory)? {
        let score = Score::of(&seen, machine);
        println!("{}", score.row(&name, limit));
        println!("{}", compare::misses(&seen, machine));
        if limit.as_f64() >= machine as f64 {
            control.push(score)
        } else {
            all.push(score)
        }
    }
    Ok(compare::verdict(&all, &control))
}

fn wanted() -> Result<Wanted, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let limits = arguments.get(1).map_or("500m,1,2", String::as_str);
    Ok(Wanted {
        seconds: arguments.first().map_or(Ok(20), |s| s.parse())?,
        limits: limits
            .split(',')
            .map(str::parse)
            .collect::<Result<_, _>>()?,
        gc_threads: arguments.get(2).map_or(Ok(2), |s| s.parse())?,
        jdks: arguments.get(3).map_or_else(
            || JDKS.map(str::to_owned).to_vec(),
            |names| names.split(',').map(str::to_owned).collect(),
        ),
        keep: arguments.get(4).map(PathBuf::from),
    })
}

/// Each wanted JDK that is here, by the name it was asked for.
fn jdks(wanted: &[String]) -> Vec<(String, InstalledJdk)> {
    let found = DetectedJdks::scan_places(&JdkPlaces::of_process());
    let mut jdks = Vec::new();
    for name in wanted {
        match found.select(name) {
            Ok(jdk) => jdks.push((format!("JDK {name}"), jdk)),
            Err(reason) => println!("SKIP JDK {name}: {reason}"),
        }
    }
    jdks
}

/// The allocation workload's jar.
fn jar() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/workloads/allocation.jar")
}
