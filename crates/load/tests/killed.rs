//! A server that dies in the middle: every request still has exactly one outcome.
//!
//! The server is this test program again, in a separate process, so that SIGKILL can hit it.

mod plans;
#[allow(dead_code, reason = "other tests need the rest")]
mod rig;

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use loadline_load::{LoadModel, LoadOutcome, LoadPlan, run};
use rig::server::{Behaviour, Server};

const ADDRESS: &str = "LOADLINE_TEST_ADDRESS";
const MARK: &str = "serving on ";

#[test]
#[ignore = "it is the server process that the tests here start"]
fn server_process() {
    let address = std::env::var(ADDRESS).expect("the test says where");
    let server = Server::start(address.parse().expect("an address"), Behaviour::default());
    println!("\n{MARK}{}", server.as_ref().expect("it is free").address);
    // The end of the pipe is the end of the test.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// The server in a separate process.
struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    fn start(address: SocketAddr) -> Self {
        let program = std::env::current_exe().expect("the test runs");
        let mut child = Command::new(program)
            .args(["server_process", "--exact", "--ignored", "--nocapture"])
            .env(ADDRESS, address.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the test can be started again");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut lines = output.lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix(MARK)?.parse().ok());
        Self {
            child,
            address: address.expect("the server says where it serves"),
        }
    }

    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is a child");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs; the server dies after the first second, and `then` may start another server. Returns the
/// number of answers in that second too.
fn killed(plan: &LoadPlan, server: &mut Process, then: &mut dyn FnMut()) -> (LoadOutcome, u64) {
    let (mut scheduled, mut ended, mut before) = (0, 0, 0);
    let outcome = run(plan, &Arc::new(AtomicBool::new(false)), &mut |second| {
        if second.index == 0 {
            server.kill();
            then();
            before = second.totals.ok;
        }
        let totals = &second.totals;
        scheduled += totals.scheduled;
        ended += totals.ok + totals.failed_requests() + totals.unfinished;
    });
    let outcome = outcome.expect("failed requests are no error");
    outcome.measure.check_balance().expect("outcomes add up");
    assert_eq!((scheduled, ended), (outcome.measure.scheduled, scheduled));
    let errors = outcome.measure.errors_by_name();
    let known = ["refused", "reset", "closed", "shed"];
    assert!(
        errors.keys().all(|kind| known.contains(&kind.as_str())),
        "{errors:?}"
    );
    (outcome, before)
}

fn free() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

#[test]
fn a_killed_server_costs_errors_but_not_the_schedule() {
    let mut server = Process::start(free());
    let model = LoadModel::at_constant_rate(1000.0, Duration::from_secs(3));
    let plan = plans::plan(server.address, model);
    let (outcome, before) = killed(&plan, &mut server, &mut || {});
    let measure = &outcome.measure;
    assert_eq!(measure.scheduled, 3000);
    // Answers stay counted. Their number depends on the machine: late answers were lost with the
    // server.
    assert!(
        before >= 100 && measure.ok >= before,
        "{before}: {measure:?}"
    );
    assert!(
        measure.failed_requests() >= 500,
        "{:?}",
        measure.errors_by_name()
    );
}

#[test]
fn a_closed_model_goes_on_without_its_server() {
    let mut server = Process::start(free());
    let model = LoadModel::ClosedFor {
        duration: Duration::from_secs(2),
    };
    let plan = plans::plan(server.address, model);
    let (outcome, _) = killed(&plan, &mut server, &mut || {});
    assert!(outcome.measure.ok > 0 && outcome.measure.failed_requests() > 0);
}

#[test]
fn a_server_that_comes_back_is_used_again() {
    let mut server = Process::start(free());
    let address = server.address;
    let mut second = None;
    let model = LoadModel::at_constant_rate(500.0, Duration::from_secs(6));
    let plan = plans::plan(address, model);
    let (outcome, _) = killed(&plan, &mut server, &mut || {
        second = Some(Process::start(address));
    });
    let measure = &outcome.measure;
    assert_eq!(measure.scheduled, 3000);
    // It came back while the second was observed; requests refused until then stay refused.
    assert!(measure.ok >= 1500, "{:?}", measure.errors_by_name());
}
