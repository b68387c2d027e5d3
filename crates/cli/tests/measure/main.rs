//! loadline as a user runs it: arguments in, exit code and text out, real trials in between.
//!
//! One program plays all other parts: the test runner, and the applications (`zoo MODE`). Tests run
//! one at a time, because a measurement takes the whole machine. Needs root and cgroups; without
//! them every test is skipped by name. `measure [FILTER [--exact]] [--skip FILTER]` runs the tests
//! with names that contain the filter; LOADLINE_KILLS=200 kills loadline that often instead of 16
//! times, LOADLINE_SEED=1 at other moments.

mod answers;
mod apart;
mod applications;
mod caches;
mod calls;
mod compose;
mod denied;
mod dependencies;
mod disk;
mod engines;
mod forms;
mod hostile_images;
mod images;
mod instances;
mod interrupted;
mod jobs;
mod killed;
mod lab;
mod levels;
mod load_commands;
mod metrics;
mod mixes;
mod notified;
mod openj9;
mod ports;
mod postgresql;
mod process;
mod refused;
mod runner;
#[path = "../screen/mod.rs"]
mod screen;
mod scripts;
mod serving;
mod shared_classes;
mod shared_dependencies;
mod soaks;
mod starts;
mod tls;
mod traces;
mod tutorial;
mod uml;
mod verifies;
#[path = "../../../../tests/wanted.rs"]
mod wanted;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| word.to_string_lossy().into_owned());
    let mut arguments = words.peekable();
    match arguments.next_if(|first| first == "zoo") {
        Some(_) => ExitCode::from(loadline_zoo::run(arguments)),
        None => runner::run(&wanted::Wanted::by(arguments)),
    }
}
