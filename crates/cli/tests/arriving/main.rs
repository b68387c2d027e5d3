//! `resume --kubernetes` of a foreign result in the namespace: accepted parts, refusals, and the
//! question before anything runs. No cluster, no root, no trials.

// Helpers of tests, too, may fail by a panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod api_server;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use api_server::{ApiServer, Forged, kubeconfig};
use loadline_analysis::record::MachineDescription;
use loadline_kubernetes::in_cluster::pieces::{ControllerEnd, ResultGround, ResultPiece};
use loadline_runner::store::{
    FinishedTrial, NewResult, ResultKind, ResultRow, ResultStatus, Store,
};

const ID: &str = "019aaa00-0000-7000-8000-000000000001";

/// As `send` writes one, but for the place and the image.
const EXPERIMENT: &str = r#"
slo = "p99<250ms"
[app]
image = "attacker.example/evil:1"
[app.ready]
http = "/health"
[load]
url = "http://localhost:8080/"
rate = "100/s"
[limits]
cpu = "500m"
memory = "128Mi"
[kubernetes]
context = "prod"
namespace = "payments"
trial-image = "attacker.example/anything:1"
[search]
min-memory = "64Mi"
max-memory = "128Mi"
"#;

fn row(experiment: &str) -> ResultRow {
    ResultRow {
        id: ID.to_owned(),
        kind: ResultKind::Size,
        title: "orders".to_owned(),
        created_unix_ms: 1,
        experiment: experiment.to_owned(),
        directory: "/".into(),
        command: Vec::new(),
        machine: MachineDescription::default(),
        status: ResultStatus::Running,
        outcome: None,
        trials: 0,
    }
}

fn begun(experiment: &str) -> ResultPiece {
    ResultPiece::Begun(Box::new(row(experiment)))
}

/// Two clusters, one of which the user names, and a state directory.
struct Lab {
    place: tempfile::TempDir,
    staging: ApiServer,
    prod: ApiServer,
}

impl Lab {
    fn with(holds: Forged) -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let [staging, prod] = [holds.clone(), holds].map(ApiServer::start);
        kubeconfig(place.path(), &[("staging", &staging), ("prod", &prod)]);
        Self {
            place,
            staging,
            prod,
        }
    }

    fn state(&self) -> String {
        self.place.path().join("state").display().to_string()
    }

    fn store(&self) -> Store {
        Store::open_or_create(Path::new(&self.state())).expect("a store")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("KUBECONFIG", self.place.path().join("kubeconfig"))
            .env_remove("LOADLINE_RESULT")
            .current_dir(self.place.path());
        command
    }

    /// `loadline resume --kubernetes` of the only result there.
    fn resume(&self, flags: &[&str]) -> Output {
        self.loadline(&[&RESUME[..], flags].concat())
    }

    fn loadline(&self, words: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_loadline"))
            .args(words)
            .args(["--state", &self.state()])
            .stdin(Stdio::null())
            .output()
            .expect("it starts")
    }

    /// The same on a terminal, with an answer.
    fn answered(&self, answer: &str) -> (Option<i32>, String) {
        let words = [&RESUME[..], &["--state"]].concat().join(" ");
        let line = format!(
            "{} {words} {}",
            env!("CARGO_BIN_EXE_loadline"),
            self.state()
        );
        let child = self
            .command("script")
            .args(["-qefc", &line, "/dev/null"])
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script of util-linux starts");
        let mut input = child.stdin.as_ref().expect("it is piped");
        input.write_all(answer.as_bytes()).expect("it is typed");
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    }

    /// That nothing was made, changed or removed in either cluster, and no result came here.
    fn untouched(&self) {
        assert_eq!(self.staging.changes(), [""; 0]);
        assert_eq!(self.prod.requests(), [""; 0]);
        assert_eq!(self.store().all_results().expect("a store"), []);
    }
}

const RESUME: [&str; 7] = [
    "resume",
    "last",
    "--kubernetes",
    "--context",
    "staging",
    "--namespace",
    "sizing",
];

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn it_runs_in_the_cluster_and_namespace_that_the_user_named() {
    let lab = Lab::with(Forged::ended(ID, &[begun(EXPERIMENT)]));
    let output = lab.resume(&["--yes"]);
    let said = said(&output);
    assert_eq!(lab.prod.requests(), [""; 0], "{said}");
    let made: Vec<String> = lab.staging.changes();
    let is_made =
        |request: &String| request.starts_with("POST /apis/batch/v1/namespaces/sizing/jobs");
    assert!(made.iter().any(is_made), "{made:?}\n{said}");
    assert!(
        !made.iter().any(|request| request.contains("payments")),
        "{made:?}"
    );
    insta::assert_snapshot!(said, @"
    warning: the experiment of the result in the cluster names the context prod and the namespace payments; it runs only in the namespace sizing (staging)
    0 finished trials came from the cluster
    the experiment of this result came from the cluster. It runs:
      image             attacker.example/evil:1
      loadline's image  attacker.example/anything:1
      namespace         sizing (context staging)
      service account   default, without a token
    warning: the Job in the cluster ended without a report: BackoffLimitExceeded
    loadline: error: making a Job in the cluster: as far as this test goes
    hint: `kubectl get events` in the namespace shows more
    ");
}

#[test]
fn an_experiment_of_this_machine_is_refused() {
    let (local, _) = EXPERIMENT.split_once("[kubernetes]").expect("a table");
    let local = local.replace(
        "image = \"attacker.example/evil:1\"",
        "command = [\"bash\", \"-c\", \"id\"]\nnetwork = \"host\"",
    );
    let lab = Lab::with(Forged::ended(ID, &[begun(&local)]));
    let output = lab.resume(&["--yes"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(
        said(&output).contains("has no [kubernetes] table"),
        "{output:?}"
    );
    lab.untouched();
}

#[test]
fn a_file_of_this_machine_goes_nowhere() {
    for reference in ["{file:LOOT}", "{env-file:LOOT#A}", "{compose:LOOT#a#B}"] {
        let place = tempfile::tempdir().expect("a directory");
        let loot = place.path().join("loot");
        std::fs::write(&loot, "operators-secret").expect("it is written");
        let reference = reference.replace("LOOT", &loot.display().to_string());
        let text = EXPERIMENT.replace(
            "[app.ready]",
            &format!("[app.env]\nX = \"{reference}\"\n[app.ready]"),
        );
        let lab = Lab::with(Forged::ended(ID, &[begun(&text)]));
        let output = lab.resume(&["--yes"]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let said = said(&output);
        assert!(said.contains("refers to a file of this machine"), "{said}");
        lab.untouched();
    }
}

/// The recorded search.
fn recorded() -> serde_json::Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../records/2026-11-20-spring-web-size/result.json.gz");
    let file = std::fs::File::open(path).expect("the record");
    serde_json::from_reader(flate2::read::GzDecoder::new(file)).expect("JSON")
}

fn trial(result: &str, id: &str) -> ResultPiece {
    let read = recorded();
    let mut record = read["trials"][0].clone();
    record["id"] = id.into();
    record["result"] = result.into();
    record["repeat"] = 77.into();
    ResultPiece::Trial(Box::new(FinishedTrial {
        attempt: 1,
        record: serde_json::from_value(record).expect("a record"),
    }))
}

/// A result of this store that no cluster ever had.
fn own_result(store: &Store) -> ResultRow {
    let new = NewResult {
        kind: ResultKind::Size,
        title: "own".to_owned(),
        experiment: EXPERIMENT.to_owned(),
        directory: "/".into(),
        command: Vec::new(),
        machine: MachineDescription::default(),
    };
    let id = store.create_result(&new).expect("a result");
    store
        .set_status(&id, ResultStatus::Done, None)
        .expect("it ends");
    store.result_by_prefix(&id).expect("it is there")
}

fn poison(result: &str) -> Vec<ResultPiece> {
    let machine = MachineDescription {
        cpu_model: "POISONED".to_owned(),
        ..MachineDescription::default()
    };
    let begun = ResultPiece::Begun(Box::new(ResultRow {
        id: result.to_owned(),
        ..row(EXPERIMENT)
    }));
    let ended = ControllerEnd {
        status: ResultStatus::Failed,
        outcome: None,
        code: 0,
        error: None,
        hints: Vec::new(),
    };
    let ground = ResultGround {
        machine,
        fingerprint: Some("f00d".to_owned()),
    };
    vec![
        begun,
        ResultPiece::Machine(Box::new(ground)),
        trial(result, "019aaa00-0000-7000-8000-0000000000ff"),
        ResultPiece::Ended(ended),
    ]
}

#[test]
fn a_result_that_was_never_in_a_cluster_stays_as_it_is() {
    let place = tempfile::tempdir().expect("a directory");
    let store = Store::open_or_create(&place.path().join("state")).expect("a store");
    let own = own_result(&store);
    // Under the Job of another result, and under its own.
    for job in [ID, own.id.as_str()] {
        let lab = Lab::with(Forged::ended(job, &poison(&own.id)));
        let state = place.path().join("state").display().to_string();
        let output = lab
            .command(env!("CARGO_BIN_EXE_loadline"))
            .args(RESUME)
            .args(["--yes", "--state", &state])
            .output()
            .expect("it starts");
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert_eq!(lab.staging.changes(), [""; 0], "{output:?}");
        assert_eq!(
            store.result_by_prefix(&own.id).expect("it is there"),
            own,
            "{output:?}"
        );
        assert_eq!(store.finished_trials(&own.id).expect("a store"), []);
        assert_eq!(store.away_location(&own.id).expect("a store"), None);
        assert_eq!(store.all_results().expect("a store").len(), 1);
    }
}

#[test]
fn a_trial_of_another_result_or_with_a_path_as_its_id_is_refused() {
    let other = "019aaa00-0000-7000-8000-000000000002";
    for (trial, why) in [
        (
            trial(other, "019aaa00-0000-7000-8000-0000000000ff"),
            "it is a trial of the result 019aaa00",
        ),
        (trial(ID, "/tmp/victim"), "/tmp/victim, is not a UUID"),
        (trial(ID, "../../victim"), "../../victim, is not a UUID"),
    ] {
        let lab = Lab::with(Forged::ended(ID, &[begun(EXPERIMENT), trial]));
        let output = lab.resume(&["--yes"]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(said(&output).contains(why), "{output:?}");
        lab.untouched();
    }
}

#[test]
fn a_job_whose_id_is_a_path_is_refused() {
    for odd in [
        "../../victim",
        "/tmp/victim",
        "a/b",
        "a b",
        "019AAA00-0000-7000-8000-000000000001",
    ] {
        let lab = Lab::with(Forged::ended(odd, &[begun(EXPERIMENT)]));
        let output = lab.resume(&["--yes"]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(said(&output).contains("its id is not a UUID"), "{output:?}");
        lab.untouched();
    }
}

#[test]
fn nothing_runs_before_somebody_has_looked_at_it() {
    let text = EXPERIMENT.replace("[app.ready]", "[app.env]\nX = \"{env:HOME}\"\n[app.ready]");
    let lab = Lab::with(Forged::ended(ID, &[begun(&text)]));
    let output = lab.resume(&[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let shown = said(&output);
    assert!(shown.contains("repeat the command with --yes"), "{shown}");
    for line in [
        "attacker.example/evil:1",
        "sizing (context staging)",
        "HOME, read from",
        "service account",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert_eq!(lab.staging.changes(), [""; 0]);
    // Asked again also where it is resumed as a result of this store.
    let output = lab.loadline(&["resume", "last"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let (code, text) = lab.answered("n\n");
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("run it? [y/N]"), "{text}");
    assert_eq!(lab.staging.changes(), [""; 0], "{text}");
    let (_, text) = lab.answered("y\n");
    let made = lab.staging.changes();
    assert!(
        made.iter().any(|request| request.starts_with("POST ")),
        "{made:?}\n{text}"
    );
    assert_eq!(lab.prod.requests(), [""; 0]);
}

#[test]
fn to_fetch_it_asks_nothing_and_runs_nothing() {
    let pieces = [
        begun(EXPERIMENT),
        trial(ID, "019aaa00-0000-7000-8000-0000000000ff"),
    ];
    let lab = Lab::with(Forged::ended(ID, &pieces));
    let output = lab.resume(&["--fetch"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        said(&output).contains("1 finished trial came from the cluster"),
        "{output:?}"
    );
    let made = lab.staging.changes();
    assert!(
        made.iter().all(|request| request.starts_with("DELETE ")),
        "{made:?}"
    );
    // The fetched experiment does not belong to this machine's user either.
    let output = lab.loadline(&["resume", "last"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        said(&output).contains("repeat the command with --yes"),
        "{output:?}"
    );
}

/// The end of a search, with a changed copy of the recorded answer.
fn answer(change: impl FnOnce(&mut serde_json::Value)) -> ResultPiece {
    let mut answer = recorded()["recommendation"].clone();
    change(&mut answer);
    ResultPiece::Ended(ControllerEnd {
        status: ResultStatus::Done,
        outcome: Some(answer.to_string()),
        code: 0,
        error: None,
        hints: Vec::new(),
    })
}

#[test]
fn an_answer_that_was_fetched_is_not_soaked_before_somebody_has_looked_at_it() {
    let lab = Lab::with(Forged::ended(ID, &[begun(EXPERIMENT), answer(|_| {})]));
    let output = lab.resume(&[]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "its end is fetched: {output:?}"
    );
    let before = lab.staging.changes();
    let output = lab.loadline(&["soak", "last"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        said(&output).contains("repeat the command with --yes"),
        "{output:?}"
    );
    assert_eq!(lab.staging.changes(), before);
    let output = lab.loadline(&["soak", "last", "--yes"]);
    assert!(
        said(&output).contains("as far as this test goes"),
        "{output:?}"
    );
}

#[test]
fn an_answer_that_names_a_file_of_this_machine_is_refused() {
    let forged = answer(|answer| {
        answer["configuration"]["env"] = serde_json::json!({ "X": "{file:/etc/shadow}" });
    });
    let lab = Lab::with(Forged::ended(ID, &[begun(EXPERIMENT), forged]));
    let output = lab.resume(&["--yes"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = said(&output);
    assert!(
        said.contains("that refers to a file of this machine"),
        "{said}"
    );
    let row = lab.store().result_by_prefix(ID).expect("it was found");
    assert_eq!((row.status, row.outcome), (ResultStatus::Interrupted, None));
    assert_eq!(lab.staging.changes(), [""; 0]);
}

/// The controller in the cluster reads the same pieces, without a user to ask.
#[test]
fn the_controller_checks_what_it_runs() {
    let controller = |experiment: &str| {
        let lab = Lab::with(Forged::ended(ID, &[begun(experiment)]));
        let output = lab
            .command(env!("CARGO_BIN_EXE_loadline"))
            .args(["resume", ID])
            .args(&RESUME[2..])
            .args(["--state", &lab.state()])
            .env("LOADLINE_RESULT", ID)
            .env("LOADLINE_JOB_UID", "u")
            .env("LOADLINE_POD", "pod-1")
            .output()
            .expect("it starts");
        (lab, said(&output))
    };
    let file = "[app.env]\nX = \"{file:/etc/shadow}\"\n[app.ready]";
    let (lab, said) = controller(&EXPERIMENT.replace("[app.ready]", file));
    assert!(said.contains("refers to a file of this machine"), "{said}");
    assert_eq!(lab.staging.changes(), [""; 0]);
    let (local, _) = EXPERIMENT.split_once("[kubernetes]").expect("a table");
    let (lab, said) = controller(local);
    assert!(said.contains("has no [kubernetes] table"), "{said}");
    assert_eq!(lab.staging.changes(), [""; 0]);
    let variable = "[app.env]\nX = \"{env:HOME}\"\n[app.ready]";
    let (lab, said) = controller(&EXPERIMENT.replace("[app.ready]", variable));
    assert!(said.contains("it reads the variables HOME"), "{said}");
    assert_eq!(lab.prod.requests(), [""; 0], "{said}");
    let made = lab.staging.changes();
    let is_there = |request: &String| request.contains("/namespaces/sizing/");
    assert!(
        !made.is_empty() && made.iter().all(is_there),
        "{made:?}\n{said}"
    );
}
