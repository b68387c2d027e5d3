//! The busy neighbour of a trial: busy when it is let go, gone when its standard input ends.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_neighbour_is_busy_until_its_input_ends() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["neighbour", "2", "0"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"\n").expect("it reads");
    let tasks = format!("/proc/{}/task", child.id());
    let begin = Instant::now();
    let threads = || fs::read_dir(&tasks).map_or(0, Iterator::count);
    while threads() < 3 {
        assert!(begin.elapsed() < Duration::from_secs(60), "no threads");
        std::thread::yield_now();
    }
    drop(input);
    assert!(child.wait().expect("it ends").success());
}
