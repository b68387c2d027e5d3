//! A load generator that takes memory without end, like a generator with circumvented bounds.

use std::fs::File;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use loadline_analysis::record::InvalidReason;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::lab::{Lab, load};
use crate::runner::Case;

pub const CASES: [Case; 1] = [("greedy_generator", greedy_generator)];

/// Suffix of the names of trials with a greedy generator.
const GREEDY: &str = "-greedy";

/// Nobody's generator takes more; without a limit it ends here.
const MOST: usize = 1 << 30;

/// Whether this process is to be one.
pub fn is_greedy() -> bool {
    std::env::var("LOADLINE_TRIAL").is_ok_and(|trial| trial.ends_with(GREEDY))
}

/// Memory that no limit of the process itself counts: the kernel's, for files in memory, as for
/// sockets.
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
    assert_eq!(
        failure.cause,
        InvalidReason::GeneratorSaturated,
        "{failure:?}"
    );
    assert!(
        failure.detail.contains("was killed; try fewer"),
        "{failure:?}"
    );
    let kills = evidence.cgroup.oom_kills;
    assert_eq!(kills.unwrap_or(0), 0, "the application was killed");
    lab.assert_clean();
}
