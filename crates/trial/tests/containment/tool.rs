//! Load commands: what an honest one sends is timed from before the service, and what a bad one does makes
//! the trial void and leaves nothing behind.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use loadline_analysis::record::{Evidence, InvalidReason, LoadFrom, ObservedModel, TrialPhase};
use loadline_load::LoadModel;
use loadline_protocol::{Account, AppSpec, LoadCommandSpec, LoadPhase};
use loadline_sizing::Bytes;

use crate::lab::{Lab, PORT, Spec, UID, load};
use crate::runner::Case;

pub const CASES: [Case; 6] = [
    ("load_command_is_timed", is_timed),
    ("load_command_waits_in_a_stall", waits_in_a_stall),
    ("load_command_waits_for_ever", waits_for_ever),
    ("load_command_is_void", is_void),
    ("load_command_is_contained", is_contained),
    ("backlog_command_is_contained", backlog_is_contained),
];

/// Four connections, each with 50 requests a second as long as it lives.
const HONEST: &str = r#"
import http.client, threading, time
def user():
    server = http.client.HTTPConnection("localhost", 8080)
    while True:
        server.request("GET", "/")
        server.getresponse().read()
        time.sleep(0.02)
for _ in range(4):
    threading.Thread(target=user).start()
"#;

/// A connection every 50 ms, whatever became of the others.
const OPEN: &str = r#"
import socket, threading, time
def once():
    with socket.create_connection(("localhost", 8080)) as server:
        server.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        while server.recv(4096):
            pass
while True:
    threading.Thread(target=once).start()
    time.sleep(0.05)
"#;

fn phase(phase: TrialPhase, seconds: u64) -> LoadPhase {
    let mut phase = LoadPhase {
        phase,
        ..load(1.0, Duration::ZERO)
    };
    phase.plan.model = LoadModel::ClosedFor {
        duration: Duration::from_secs(seconds),
    };
    phase
}

/// A trial of a server with a Python script as its load; `None` without Python.
fn spec(lab: &mut Lab, served: &[&str], script: &str) -> Option<Spec> {
    let python = PathBuf::from("/usr/bin/python3");
    if !python.is_file() {
        println!("SKIP load commands: no {}", python.display());
        return None;
    }
    let mut spec = lab.spec(served);
    let words = [python.to_str()?, "-c", script].map(str::to_owned).to_vec();
    spec.load_command = Some(LoadCommandSpec {
        app: AppSpec::Command {
            command: words.clone(),
            env: BTreeMap::new(),
            directory: PathBuf::from("/"),
        },
        words,
        account: Account { uid: UID, gid: UID },
        port: Some(PORT),
        may_end: false,
        fails_with: None,
        first_request: Duration::from_secs(20),
        memory: Bytes::from_mib(256),
    });
    spec.load = vec![phase(TrialPhase::WarmUp, 1), phase(TrialPhase::Measure, 3)];
    Some(spec)
}

fn measured(spec: &Spec) -> Evidence {
    match spec.start().end() {
        Some(loadline_protocol::TrialEnding::Measured(evidence)) => *evidence,
        other => panic!("it was not measured: {other:?}"),
    }
}

/// One run over both phases, cut by time from its first request; nothing is said of what it cannot know.
fn is_timed() {
    let mut lab = Lab::new();
    let Some(spec) = spec(&mut lab, &["serve"], HONEST) else {
        return;
    };
    let evidence = measured(&spec);
    assert_eq!(evidence.failure, None);
    let phases: Vec<_> = evidence.load.iter().map(|load| load.phase).collect();
    assert_eq!(phases, [TrialPhase::WarmUp, TrialPhase::Measure]);
    let measure = &evidence.load[1];
    assert_eq!(measure.duration, Duration::from_secs(3));
    assert!((100..=620).contains(&measure.scheduled), "{measure:?}");
    assert_eq!(measure.ok, measure.scheduled, "{measure:?}");
    let names: Vec<_> = measure
        .by_request
        .iter()
        .map(|r| (r.name.as_str(), r.ok))
        .collect();
    assert_eq!(names, [("GET /", measure.ok)]);
    assert_eq!((&measure.service_time, measure.send_lag_p99), (&None, None));
    assert!(
        measure
            .generator_cpu
            .is_some_and(|cpu| cpu > Duration::ZERO)
    );
    let Some(LoadFrom::Command { command }) = &measure.load_from else {
        panic!("{measure:?}");
    };
    // On a busy machine the server may stall, and this script waits then.
    assert_ne!(command.observed_model(), ObservedModel::Open);
    assert!(command.cpu_wait.is_some() && command.words[1] == "-c");
    let by_second: u64 = evidence.seconds.iter().filter_map(|s| s.achieved).sum();
    assert!(by_second >= measure.ok, "{by_second}");
    lab.assert_clean();
}

/// A script that waits for each answer sends nothing while there is none; other scripts go on.
fn waits_in_a_stall() {
    let mut lab = Lab::new();
    for (script, expected) in [(HONEST, ObservedModel::Closed), (OPEN, ObservedModel::Open)] {
        let Some(mut spec) = spec(&mut lab, &["serve"], script) else {
            return;
        };
        spec.load = vec![phase(TrialPhase::Measure, 6)];
        let mut part = spec.start();
        part.until_phase(TrialPhase::Measure);
        let name = spec.trial.clone();
        std::thread::spawn(move || crate::lab::stop_for(&name, 3, Duration::from_secs(2)));
        let Some(loadline_protocol::TrialEnding::Measured(evidence)) = part.end() else {
            panic!("it was not measured");
        };
        assert_eq!(evidence.failure, None);
        let Some(LoadFrom::Command { command }) = &evidence.load[0].load_from else {
            panic!("{:?}", evidence.load);
        };
        assert_eq!(command.observed_model(), expected, "{command:?}");
    }
    lab.assert_clean();
}

/// A service that hangs from the warm-up on is judged: its requests wait, and none is answered.
fn waits_for_ever() {
    let mut lab = Lab::new();
    for script in [HONEST, OPEN] {
        let Some(mut spec) = spec(&mut lab, &["serve"], script) else {
            return;
        };
        spec.load = vec![phase(TrialPhase::WarmUp, 2), phase(TrialPhase::Measure, 2)];
        for phase in &mut spec.load {
            phase.plan.drain = Duration::from_secs(1);
        }
        let mut part = spec.start();
        part.until_phase(TrialPhase::WarmUp);
        let name = spec.trial.clone();
        std::thread::spawn(move || crate::lab::stop_for(&name, 1, Duration::from_secs(8)));
        let Some(loadline_protocol::TrialEnding::Measured(evidence)) = part.end() else {
            panic!("it was not measured");
        };
        assert_eq!(evidence.failure, None);
        let measure = &evidence.load[1];
        assert!(measure.scheduled > 0 && measure.ok == 0, "{measure:?}");
    }
    lab.assert_clean();
}

/// What makes a trial void, and what it says.
fn is_void() {
    let tls = "import socket, time\ns = socket.create_connection(('localhost', 8080))\ns.sendall(b'\\x16\\x03\\x01\\x02\\x00\\x01')\ntime.sleep(30)";
    let garbage = "import socket, time\ns = socket.create_connection(('localhost', 8080))\ns.sendall(b'\\0' * 1000)\nprint('x' * 100_000_000)\ntime.sleep(30)";
    let mut lab = Lab::new();
    for (script, why) in [
        (
            "import sys; sys.exit('no such host')",
            "ended (exit code 1) after",
        ),
        (
            "print('sent all of it')",
            "it said: sent all of it; it must stay in the foreground and send for 4 s",
        ),
        (
            "import time; time.sleep(60)",
            "sent no request to http://localhost:8080 within 20 s of its start, it said nothing; give it",
        ),
        (
            tls,
            "spoke TLS to the service, which loadline cannot time; let it send HTTP without TLS",
        ),
        (garbage, "spoke no HTTP to the service"),
    ] {
        let Some(spec) = spec(&mut lab, &["serve"], script) else {
            return;
        };
        let failure = measured(&spec).failure.expect("it is void");
        assert_eq!(failure.cause, InvalidReason::LoadCommand, "{failure:?}");
        assert!(failure.detail.contains(why), "{why}: {failure:?}");
        lab.assert_clean_after(why);
    }
}

/// Whatever it does ends with the trial.
fn is_contained() {
    let stubborn =
        format!("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{HONEST}");
    let forks = format!("import os\nif os.fork(): os._exit(0)\nos.setsid()\n{HONEST}");
    let disk = "import os\nwith open('/tmp/results', 'wb') as f:\n    for _ in range(2048): f.write(b'x' * (1 << 20)); f.flush()";
    let memory = "held = []\nwhile True: held.append(b'x' * (1 << 20))";
    let bomb = "import os, time\nfor _ in range(20):\n    if os.fork() == 0:\n        while True: time.sleep(1)\ntime.sleep(60)";
    let mut lab = Lab::new();
    for (script, why) in [
        (stubborn.as_str(), None),
        (forks.as_str(), Some("ended (exit code 0) after")),
        (
            disk,
            Some("wrote more than 1 GiB into its /tmp and was killed"),
        ),
        (
            memory,
            Some("took more memory than it may have and was killed"),
        ),
        (bomb, Some("sent no request")),
    ] {
        let Some(spec) = spec(&mut lab, &["serve"], script) else {
            return;
        };
        let failure = measured(&spec).failure;
        let detail = failure.map(|failure| failure.detail);
        match why {
            None => assert_eq!(detail, None),
            Some(why) => assert!(
                detail.as_ref().is_some_and(|d| d.contains(why)),
                "{why}: {detail:?}"
            ),
        }
        lab.assert_clean_after(script);
    }
}

/// What fills a backlog may take no more memory than a load command.
fn backlog_is_contained() {
    let mut lab = Lab::new();
    let script = "held = b'x' * (300 << 20)";
    let Some(mut spec) = spec(&mut lab, &["serve"], script) else {
        return;
    };
    spec.backlog = spec.load_command.take().map(|command| LoadCommandSpec {
        memory: Bytes::from_mib(64),
        ..command
    });
    let refused = match spec.start().end() {
        Some(loadline_protocol::TrialEnding::Refused(refusal)) => refusal.to_string(),
        other => panic!("it was not refused: {other:?}"),
    };
    assert!(refused.contains("its backlog command"), "{refused}");
    lab.assert_clean();
}
