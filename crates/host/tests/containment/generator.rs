//! Load generators that are not as they should be: one that takes memory without end, as one would whose
//! bounds a server got round, and one that comes late, when its application is gone.

use std::fs::File;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use loadline_analysis::record::Invalid;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::lab::{Lab, load};
use crate::runner::Case;

pub const CASES: [Case; 2] = [
    ("greedy_generator", greedy_generator),
    ("generator_after_the_end", generator_after_the_end),
];

/// How the name of a trial ends whose generator is greedy.
const GREEDY: &str = "-greedy";

/// How the name of a trial ends whose generator is late, and how late.
const LATE: (&str, Duration) = ("-late", Duration::from_secs(2));

/// Nobody's generator takes more; without a limit it ends here.
const MOST: usize = 1 << 30;

/// Whether this process is to be a greedy one.
pub fn is_greedy() -> bool {
    is_of(GREEDY)
}

/// Waits where this process is to be late.
pub fn be_late() {
    if is_of(LATE.0) {
        std::thread::sleep(LATE.1);
    }
}

fn is_of(kind: &str) -> bool {
    std::env::var("LOADLINE_TRIAL").is_ok_and(|trial| trial.ends_with(kind))
}

/// Memory that no limit of the process itself counts: the kernel's, of files in memory, as that of
/// sockets would be.
pub fn take() -> ExitCode {
    let mut order = Vec::new();
    let read = std::io::stdin().read_to_end(&mut order);
    let file = memfd_create("greedy", MemfdFlags::CLOEXEC);
    let (Ok(_), Ok(file)) = (read, file) else {
        return ExitCode::FAILURE;
    };
    let (mut file, piece) = (File::from(file), vec![7; 1 << 20]);
    for _ in 0..MOST >> 20 {
        if file.write_all(&piece).is_err() {
            break;
        }
    }
    eprintln!("nothing stopped it");
    ExitCode::FAILURE
}

/// It is killed, the application is not, and the trial says what to do instead of what it measured.
fn greedy_generator() {
    let mut lab = Lab::new();
    let mut spec = lab.spec(&["serve"]);
    spec.trial.push_str(GREEDY);
    let phase = load(50.0, Duration::from_millis(300));
    let evidence = lab.run(&spec, Some(&phase)).evidence;
    let failure = evidence.failure.expect("it was not measured");
    assert_eq!(failure.cause, Invalid::GeneratorSaturated, "{failure:?}");
    assert!(
        failure.detail.contains("was killed; try fewer"),
        "{failure:?}"
    );
    let kills = evidence.cgroup.oom_kills;
    assert_eq!(kills.unwrap_or(0), 0, "the application was killed");
    lab.assert_clean();
}

/// The application ended between its readiness and the first request: that is what is told of the trial,
/// and not that there was no network to send from.
fn generator_after_the_end() {
    let mut lab = Lab::new();
    let mut spec = lab.spec(&["exit", "after_ms=1000", "code=3"]);
    spec.trial.push_str(LATE.0);
    let phase = load(50.0, Duration::from_millis(300));
    let evidence = lab.run(&spec, Some(&phase)).evidence;
    assert!(evidence.failure.is_none(), "{:?}", evidence.failure);
    assert!(evidence.start.ready.is_some() && evidence.exit.before_stop);
    assert_eq!(evidence.exit.code, Some(3));
    lab.assert_clean();
}
