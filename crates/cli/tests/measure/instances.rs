//! Two loadlines at once disturb each other: the second refuses, or waits.

use rustix::process::Signal;

use crate::lab::Lab;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 1] = [("the_second_refuses_or_waits", the_second_refuses_or_waits)];

fn the_second_refuses_or_waits() -> Outcome {
    let (first, second) = (Lab::new(), Lab::new());
    let mut holder = hold(&first);
    let pid = format!("pid {}", holder.id());
    let call = second.call("size").args(&["--slo=p99<4s", "--rate=50/s"]);
    let call = call.arg("--url=http://localhost:8080/");
    let texts = ["another loadline is measuring", &pid, "hint: ", "--wait"];
    let refused = call.zoo(&second, &["serve"]).into_end();
    refused.expect_code(3).says(&texts);
    assert!(
        !second.state().join("loadline.db").exists(),
        "nothing is stored"
    );
    // Reading needs no machine. The result is there a moment after the lock.
    while first.results().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    first
        .call("list")
        .into_end()
        .expect_code(0)
        .prints(&["running"]);

    let mut waiting = second.measure("run").zoo(&second, &["serve"]).start();
    waiting.until("it says for whom it waits", |text| {
        text.contains("waiting: ") && text.contains(&pid)
    });
    // Waiting can be ended.
    let impatient = second.measure("run").zoo(&second, &["serve"]).start();
    impatient.signal(Signal::INT);
    let ended = impatient.end();
    assert!(
        ended.code == Some(130) || ended.signal == Some(2),
        "{ended}"
    );

    assert!(!holder.has_ended(), "it still measures");
    holder.signal(Signal::INT);
    holder.end().expect_code(130);
    waiting.end().expect_code(0).says(&["PASS"]);
    None
}

/// A loadline in a long trial.
fn hold(lab: &Lab) -> crate::process::Running {
    let call = lab.call("run").args(&["--wait", "--accept-noise"]);
    let call = call.args(&[
        "--slo=p99<4s",
        "--rate=50/s",
        "--warm-up=0s",
        "--measure=5m",
    ]);
    let call = call.arg("--url=http://localhost:8080/");
    let mut holder = call.zoo(lab, &["serve"]).start();
    holder.until_it_measures();
    assert!(!holder.has_ended(), "{}", holder.end());
    holder
}
