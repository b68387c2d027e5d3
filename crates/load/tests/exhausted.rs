//! A machine without room for another connection. One test only: it lowers the limit of open
//! files of its whole process.

mod plans;

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use loadline_load::{LoadModel, LoadPlan, run};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn connections_that_this_machine_has_no_room_for_are_named_so() {
    // The kernel accepts; this process needs no descriptors for the server's side.
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let open = std::fs::read_dir("/proc/self/fd")
        .expect("it is mounted")
        .count() as u64;
    let limits = getrlimit(Resource::Nofile);
    let few = Rlimit {
        current: Some(open + 10),
        ..limits
    };
    setrlimit(Resource::Nofile, few).expect("a soft limit may be lowered");
    let plan = LoadPlan {
        connections: 64,
        timeout: Duration::from_millis(500),
        drain: Duration::from_secs(30),
        ..plans::plan(address, LoadModel::ClosedRequests { requests: 128 })
    };
    let outcome = run(&plan, &Arc::new(AtomicBool::new(false)), &mut |_| {});
    setrlimit(Resource::Nofile, limits).expect("it was so before");
    let totals = outcome.expect("the plan can be run").measure;
    let errors = totals.errors_by_name();
    assert_eq!(totals.failed_requests(), 128, "{errors:?}");
    assert!(errors["port_exhausted"] >= 64, "{errors:?}");
}
