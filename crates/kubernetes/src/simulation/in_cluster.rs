//! A result that loadline measures in the cluster itself, against a test API server: creation,
//! storage, continuation and take-over.
//!
//! Owns no cluster behaviour except its controller, which is this process: real storage, real
//! runner and store.

use loadline_runner::store::{ResultRow, ResultStatus, TrialCopies as _};

use super::*;
use crate::in_cluster::identity::ControllerPod;
use crate::in_cluster::inside::ControllerRecords;
use crate::in_cluster::outside::{ClusterResult, ControllerNeeds, ControllerState, SendOutcome};
use crate::in_cluster::pieces::{self, ControllerEnd, PieceChunk, ResultPiece};

const ID: &str = "019aaa00-0000-7000-8000-000000000001";

fn cluster_of_server(server: &ApiServer, inside: Option<&ControllerPod>) -> ConnectedCluster {
    let address = format!("http://{}", server.address).parse().unwrap();
    let mut cluster =
        ConnectedCluster::at(&wanted_cluster(slot_number(2)), Config::new(address)).unwrap();
    cluster.inside = inside.cloned();
    cluster
}

fn stored_row() -> ResultRow {
    ResultRow {
        id: ID.to_owned(),
        kind: ResultKind::Run,
        title: "orders".to_owned(),
        created_unix_ms: 1,
        experiment: String::new(),
        directory: "/".into(),
        command: Vec::new(),
        machine: MachineDescription::default(),
        status: ResultStatus::Interrupted,
        outcome: None,
        trials: 0,
    }
}

fn controller_needs() -> ControllerNeeds {
    ControllerNeeds {
        account: ACCOUNT,
        variables: [("DB_PASSWORD".to_owned(), "hunter2".to_owned())].into(),
        notify: None,
    }
}

fn controller_pod_named(pod: &str) -> ControllerPod {
    ControllerPod {
        result: ID.to_owned(),
        uid: format!("uid-loadline-result-{ID}"),
        pod: pod.to_owned(),
    }
}

/// One pod of a controller: reads the stored pieces into an empty store, and runs the rest, up to
/// `most` records. Returns the ids known before, and all ids in its store afterwards.
fn run_controller(
    server: &ApiServer,
    pod: &str,
    repeats: u32,
    stop_after: u32,
) -> [Vec<String>; 2] {
    let inside = controller_pod_named(pod);
    let (keeping, pieces) =
        ControllerRecords::for_controller(cluster_of_server(server, Some(&inside)), &inside)
            .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open_or_create(directory.path()).unwrap();
    take_pieces(&store, &pieces);
    let ids = |store: &Store| {
        let trials = store.finished_trials(ID).unwrap();
        trials.into_iter().map(|t| t.id).collect::<Vec<_>>()
    };
    let before = ids(&store);
    store.copy_to(Box::new(keeping.clone()));
    let experiment = repeated_experiment(repeats);
    let demand = NodeDemand {
        largest: searches::largest_trial_size(&experiment),
        load: searches::load_memory(&experiment),
    };
    let of = cluster_of_server(server, Some(&inside));
    let mut host = KubernetesHost::from_cluster(of, "orders:1", ACCOUNT, demand).unwrap();
    if pieces.len() == 1 {
        store
            .stand_on(ID, &host.host_machine(), Some("ground"))
            .unwrap();
    }
    let matrix = Agenda::new(&experiment).matrix;
    let ran = run_in(&store, ID, (&mut host, experiment), &matrix, stop_after);
    if ran.is_ok() {
        let ended = ControllerEnd {
            status: ResultStatus::Done,
            outcome: None,
            code: 0,
            error: None,
            hints: Vec::new(),
        };
        keeping.keep_end(ended).unwrap();
    }
    let after = ids(&store);
    [before, after]
}

fn take_pieces(store: &Store, pieces: &[ResultPiece]) {
    let mut incoming = None;
    for piece in pieces {
        match piece {
            ResultPiece::Begun(row) => incoming = Some(store.take_result(row).unwrap()),
            ResultPiece::Trial(finished) => {
                let incoming = incoming.as_ref().unwrap();
                assert!(incoming.take_trial(finished).unwrap(), "twice");
            }
            ResultPiece::Machine(_) | ResultPiece::Ended(_) => {}
        }
    }
}

fn sent_result(server: &ApiServer) -> ClusterResult {
    let outside = ClusterResult::for_cluster(cluster_of_server(server, None), ID);
    let of = server.clone();
    // The first pod, which ends after three trials without a word.
    let first = std::thread::spawn(move || {
        while of.state().pods.is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        run_controller(&of, "pod-1", 5, 3)
    });
    let sent = outside
        .send_result(&stored_row(), &controller_needs(), &mut |_| {})
        .unwrap();
    assert_eq!(sent, SendOutcome::Works);
    let [before, after] = first.join().unwrap();
    assert_eq!(before, [""; 0]);
    assert!(after.len() >= 3, "{after:?}");
    outside
}

fn trials_in_pieces(pieces: &[ResultPiece]) -> Vec<String> {
    let of = |piece: &ResultPiece| match piece {
        ResultPiece::Trial(finished) => Some(finished.record.id.clone()),
        _ => None,
    };
    pieces.iter().filter_map(of).collect()
}

#[test]
fn the_next_pod_goes_on_and_the_laptop_fetches_the_end() {
    let server = ApiServer::start_server(simulated_nodes(3, "n", "Xeon"), 0);
    let outside = sent_result(&server);
    let finished = trials_in_pieces(&outside.kept_pieces().unwrap());
    let [before, after] = run_controller(&server, "pod-2", 5, u32::MAX);
    assert_eq!(
        before, finished,
        "what was finished is known to the next pod"
    );
    assert_eq!(after.len(), 10, "ten trials, none twice");
    let pieces = outside.kept_pieces().unwrap();
    // Kept as they end; the store has them as they began.
    let sorted = |ids: Vec<String>| ids.into_iter().collect::<BTreeSet<_>>();
    assert_eq!(sorted(trials_in_pieces(&pieces)), sorted(after));
    assert!(
        matches!(pieces[0], ResultPiece::Begun(_)) && matches!(pieces[1], ResultPiece::Machine(_))
    );
    assert!(
        matches!(pieces.last(), Some(ResultPiece::Ended(end)) if end.status == ResultStatus::Done)
    );
    outside.remove_result_job().unwrap();
    assert_eq!(wait_for_leftovers(&server), [""; 0]);
    let state = server.state();
    assert!(state.config_maps.is_empty() && state.secrets.is_empty());
}

#[test]
fn a_laptop_takes_over_in_the_middle_and_no_trial_runs_twice() {
    taken_over(&ApiServer::start_server(simulated_nodes(3, "n", "Xeon"), 0));
}

pub(super) fn taken_over(server: &ApiServer) {
    let outside = sent_result(server);
    assert_eq!(outside.controller_state().unwrap(), ControllerState::Works);
    outside.end_controller().unwrap();
    let name = format!("loadline-result-{ID}");
    assert!(!server.state().pods.contains_key(&name), "its pod is gone");
    let pieces = outside.kept_pieces().unwrap();
    let finished = trials_in_pieces(&pieces);
    assert!(finished.len() >= 3);
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    take_pieces(&store, &pieces);
    outside.remove_result_job().unwrap();
    assert_eq!(outside.controller_state().unwrap(), ControllerState::Gone);
    let experiment = repeated_experiment(5);
    let matrix = Agenda::new(&experiment).matrix;
    let mut host = host_on_server(
        server,
        slot_number(2),
        searches::largest_trial_size(&experiment),
    )
    .unwrap();
    let known = store.finished_trials(ID).unwrap();
    assert_eq!(known.len(), finished.len());
    let ran = run_in(&store, ID, (&mut host, experiment), &matrix, u32::MAX);
    assert_eq!(ran.unwrap().len(), 10);
    let all = store.finished_trials(ID).unwrap();
    assert_eq!(all.len(), 10, "ten trials, none twice");
    assert_eq!(all[..known.len()], known);
    drop(host);
    assert_eq!(wait_for_leftovers(server), [""; 0]);
}

#[test]
fn what_a_pod_that_is_gone_left_running_is_removed_by_the_next() {
    let server = ApiServer::start_server(simulated_nodes(3, "n", "Xeon"), 0);
    let first = controller_pod_named("pod-1");
    let maker = crate::sweep::maker_identity(Some(&first));
    let job = serde_json::json!({ "metadata": {
        "name": "loadline-of-the-first",
        "labels": { crate::labels::CLIENT: maker.client },
        "annotations": { crate::labels::OWNER: maker.owner },
    }, "spec": { "suspend": true } });
    let jobs = |server: &ApiServer| server.state().jobs.keys().cloned().collect::<Vec<_>>();
    let name = "loadline-of-the-first".to_owned();
    server.state().jobs.insert(name.clone(), job);
    crate::sweep::sweep_jobs(&cluster_of_server(&server, Some(&first))).unwrap();
    assert_eq!(jobs(&server), [name], "its own it leaves alone");
    crate::sweep::sweep_jobs(&cluster_of_server(
        &server,
        Some(&controller_pod_named("pod-2")),
    ))
    .unwrap();
    assert_eq!(jobs(&server), [""; 0]);
}

#[test]
fn of_two_that_work_on_one_result_the_second_ends() {
    let server = ApiServer::start_server(simulated_nodes(1, "n", "Xeon"), 0);
    let keeping = |pod: &str| {
        let inside = controller_pod_named(pod);
        ControllerRecords::for_controller(cluster_of_server(&server, Some(&inside)), &inside)
            .unwrap()
            .0
    };
    let (one, other) = (keeping("pod-1"), keeping("pod-2"));
    one.stand_on(&MachineDescription::default(), None).unwrap();
    let refusal = other.stand_on(&MachineDescription::default(), Some("x"));
    let refusal = refusal.unwrap_err().to_string();
    assert!(
        refusal.contains("another loadline is working on it"),
        "{refusal}"
    );
    one.stand_on(&MachineDescription::default(), None).unwrap();
}

#[test]
fn a_piece_whose_answer_was_lost_is_kept_once() {
    let server = ApiServer::start_server(simulated_nodes(1, "n", "Xeon"), 0);
    let inside = controller_pod_named("pod-1");
    let (keeping, _) =
        ControllerRecords::for_controller(cluster_of_server(&server, Some(&inside)), &inside)
            .unwrap();
    server.state().loses_answers = 1;
    keeping
        .stand_on(&MachineDescription::default(), Some("x"))
        .unwrap();
    assert_eq!(server.state().config_maps.len(), 1);
}

#[test]
fn an_api_server_that_is_away_for_a_moment_ends_no_look_at_what_is_kept() {
    let server = ApiServer::start_server(simulated_nodes(3, "n", "Xeon"), 0);
    let outside = sent_result(&server);
    server.state().is_away = 1;
    assert!(trials_in_pieces(&outside.kept_pieces().unwrap()).len() >= 3);
}

#[test]
fn what_cannot_begin_is_told_and_leaves_nothing() {
    let server = ApiServer::start_server(simulated_nodes(1, "n", "Xeon"), 0);
    let outside = ClusterResult::for_cluster(cluster_of_server(&server, None), ID);
    let of = server.clone();
    let controller = std::thread::spawn(move || {
        while of.state().pods.is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let inside = controller_pod_named("pod-1");
        let (keeping, _) =
            ControllerRecords::for_controller(cluster_of_server(&of, Some(&inside)), &inside)
                .unwrap();
        let ended = ControllerEnd {
            status: ResultStatus::Failed,
            outcome: None,
            code: 3,
            error: Some("the image orders:1: ErrImagePull".to_owned()),
            hints: vec!["check the name".to_owned()],
        };
        keeping.keep_end(ended).unwrap();
    });
    let sent = outside
        .send_result(&stored_row(), &controller_needs(), &mut |_| {})
        .unwrap();
    controller.join().unwrap();
    assert!(matches!(sent, SendOutcome::Ended(ended) if ended.code == 3));
    assert_eq!(wait_for_leftovers(&server), [""; 0]);
    assert!(server.state().secrets.is_empty());
    let none =
        ClusterResult::for_cluster(cluster_of_server(&server, None), "last").find_by_prefix();
    let why = none.map(|_| ()).unwrap_err().to_string();
    assert!(why.contains("no result is stored"), "{why}");
}

/// A Job with a first piece, as a sender makes them, and no pod.
fn placed(server: &ApiServer, first: &ResultPiece) {
    let chunks = pieces::split_piece(first, 0).unwrap();
    let name = format!("loadline-result-{ID}");
    let job = serde_json::json!({
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "labels": { crate::labels::RESULT: ID },
            "annotations": { crate::labels::FIRST_PIECE: pieces::piece_digest(&chunks) },
        },
        "spec": { "suspend": true },
    });
    server.state().jobs.insert(name, job);
    for chunk in &chunks {
        put(
            server,
            &format!("loadline-result-{ID}-{:05}", chunk.number),
            chunk,
        );
    }
}

fn put(server: &ApiServer, name: &str, chunk: &PieceChunk) {
    let map = serde_json::json!({
        "metadata": {
            "name": name,
            "labels": { crate::labels::RESULT: ID, "loadline.dev/piece": chunk.number.to_string() },
            "annotations": { "loadline.dev/part": format!("{}/{}", chunk.part, chunk.parts) },
            "ownerReferences": [crate::manifest::owner_reference(
                &format!("loadline-result-{ID}"),
                &format!("uid-loadline-result-{ID}"),
            )],
        },
        "binaryData": { "piece": k8s_openapi::ByteString(chunk.bytes.clone()) },
    });
    server.state().config_maps.insert(name.to_owned(), map);
}

fn begun() -> ResultPiece {
    ResultPiece::Begun(Box::new(stored_row()))
}

/// The reading of the stored pieces by both sides: the laptop and the controller.
fn said_by_both(server: &ApiServer) -> String {
    let outside = ClusterResult::for_cluster(cluster_of_server(server, None), ID).kept_pieces();
    let inside = controller_pod_named("pod-1");
    let kept = ControllerRecords::for_controller(cluster_of_server(server, Some(&inside)), &inside);
    let outside = outside.unwrap_err().to_string();
    assert_eq!(outside, kept.map(drop).unwrap_err().to_string());
    outside
}

#[test]
fn only_config_maps_with_the_exact_name_of_a_piece_count() {
    let server = ApiServer::start_server(simulated_nodes(1, "n", "Xeon"), 0);
    placed(&server, &begun());
    let other = ResultRow {
        experiment: "forged".to_owned(),
        ..stored_row()
    };
    let forged = pieces::split_piece(&ResultPiece::Begun(Box::new(other)), 0).unwrap();
    for name in [
        "zzz".to_owned(),
        format!("loadline-result-{ID}-0"),
        format!("loadline-result-{ID}-000000"),
        format!("loadline-result-{ID}-+0000"),
    ] {
        put(&server, &name, &forged[0]);
    }
    let outside = ClusterResult::for_cluster(cluster_of_server(&server, None), ID);
    assert_eq!(outside.kept_pieces().unwrap(), [begun()]);
}

#[test]
fn a_piece_that_does_not_belong_to_the_job_is_refused() {
    let server = ApiServer::start_server(simulated_nodes(1, "n", "Xeon"), 0);
    placed(&server, &begun());
    let name = format!("loadline-result-{ID}-00000");
    let owner = |map: &mut serde_json::Value, owner: serde_json::Value| {
        map["metadata"]["ownerReferences"] = owner;
    };
    for forged in [
        serde_json::json!([]),
        serde_json::json!([crate::manifest::owner_reference(
            &format!("loadline-result-{ID}"),
            "another"
        )]),
    ] {
        owner(server.state().config_maps.get_mut(&name).unwrap(), forged);
        let said = said_by_both(&server);
        assert!(said.contains("does not belong to the Job"), "{said}");
    }
}

#[test]
fn a_first_piece_that_was_not_sent_is_refused() {
    let server = ApiServer::start_server(simulated_nodes(1, "n", "Xeon"), 0);
    placed(&server, &begun());
    let other = ResultRow {
        experiment: "forged".to_owned(),
        ..stored_row()
    };
    let forged = pieces::split_piece(&ResultPiece::Begun(Box::new(other)), 0).unwrap();
    put(&server, &format!("loadline-result-{ID}-00000"), &forged[0]);
    let said = said_by_both(&server);
    assert!(
        said.contains("it was changed there: its digest differs from the Job's"),
        "{said}"
    );
    let name = format!("loadline-result-{ID}");
    let job = |server: &ApiServer, annotations: serde_json::Value| {
        let mut state = server.state();
        state.jobs.get_mut(&name).unwrap()["metadata"]["annotations"] = annotations;
    };
    job(&server, serde_json::json!({}));
    let said = said_by_both(&server);
    assert!(said.contains("its Job lacks the digest"), "{said}");
}

#[test]
fn a_first_piece_of_another_result_is_refused() {
    let server = ApiServer::start_server(simulated_nodes(1, "n", "Xeon"), 0);
    for (id, why) in [
        (
            "019aaa00-0000-7000-8000-000000000002",
            "it is of the result 019aaa00",
        ),
        ("../../etc", "it is of the result ../../etc"),
    ] {
        placed(
            &server,
            &ResultPiece::Begun(Box::new(ResultRow {
                id: id.to_owned(),
                ..stored_row()
            })),
        );
        let said = said_by_both(&server);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_trial_of_another_result_or_with_an_odd_id_is_refused() {
    let server = ApiServer::start_server(simulated_nodes(3, "n", "Xeon"), 0);
    let outside = sent_result(&server);
    let all = outside.kept_pieces().unwrap();
    let trial = all.iter().find_map(|piece| match piece {
        ResultPiece::Trial(finished) => Some(finished.clone()),
        _ => None,
    });
    let next = server.state().config_maps.len() as u32;
    let name = format!("loadline-result-{ID}-{next:05}");
    let forge = |change: &dyn Fn(&mut TrialRecord)| {
        let mut forged = trial.clone().unwrap();
        change(&mut forged.record);
        let chunks = pieces::split_piece(&ResultPiece::Trial(forged), next).unwrap();
        put(&server, &name, &chunks[0]);
        said_by_both(&server)
    };
    let said = forge(&|record| record.result = "019aaa00-0000-7000-8000-000000000002".to_owned());
    assert!(
        said.contains("it is a trial of the result 019aaa00"),
        "{said}"
    );
    let said = forge(&|record| record.id = "/tmp/victim".to_owned());
    assert!(said.contains("/tmp/victim, is not a UUID"), "{said}");
}

#[test]
fn a_job_with_an_odd_id_or_another_name_is_refused() {
    let server = ApiServer::start_server(simulated_nodes(1, "n", "Xeon"), 0);
    let find = |name: &str, label: &str| {
        let job = serde_json::json!({ "metadata": {
            "name": name, "uid": "u", "labels": { crate::labels::RESULT: label },
        }, "spec": { "suspend": true } });
        server.state().jobs = [(name.to_owned(), job)].into();
        let found =
            ClusterResult::for_cluster(cluster_of_server(&server, None), "last").find_by_prefix();
        let swept = crate::in_cluster::outside::list_results(&cluster_of_server(&server, None));
        assert_eq!(swept.unwrap(), [""; 0], "{label:?} is listed nowhere");
        found.map(|_| ()).unwrap_err().to_string()
    };
    let upper = ID.to_uppercase();
    for odd in ["../../etc", "a/b", "/", "x", "", "\u{1b}[2J", &upper] {
        let said = find(&format!("loadline-result-{odd}"), odd);
        assert!(said.contains("its id is not a UUID"), "{odd:?}: {said}");
        assert!(!said.contains('\u{1b}'), "{said}");
        let outside = ClusterResult::for_cluster(cluster_of_server(&server, None), odd);
        assert!(
            outside.kept_pieces().is_err() && outside.controller_state().is_err(),
            "{odd:?}"
        );
    }
    let said = find("another", ID);
    assert!(said.contains("the Job of that has another name"), "{said}");
    // Its name is right, its label is not.
    let other = "019aaa00-0000-7000-8000-000000000002";
    find(&format!("loadline-result-{ID}"), other);
    let outside = ClusterResult::for_cluster(cluster_of_server(&server, None), ID);
    let said = outside.kept_pieces().unwrap_err().to_string();
    assert!(
        said.contains("its label loadline.dev/result is not"),
        "{said}"
    );
}
