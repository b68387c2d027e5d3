//! A result that loadline measures in the cluster itself, against the API server of a test: what is made,
//! kept, gone on with and taken over.
//!
//! Owns no behaviour of a cluster but its controller, which is this process: real keeping, real runner
//! and store.

use loadline_engine::store::{Copies as _, ResultRow, Status};

use super::*;
use crate::in_cluster::inside::{Inside, Keeping};
use crate::in_cluster::outside::{Outside, Sent, Stands, With};
use crate::in_cluster::pieces::{Ended, Piece};

const ID: &str = "019aaa00-0000-7000-8000-000000000001";

fn cluster(server: &Server, inside: Option<&Inside>) -> Cluster {
    let address = format!("http://{}", server.address).parse().unwrap();
    let mut cluster = Cluster::at(&wanted(number(2)), Config::new(address)).unwrap();
    cluster.inside = inside.cloned();
    cluster
}

fn row() -> ResultRow {
    ResultRow {
        id: ID.to_owned(),
        kind: ResultKind::Run,
        title: "orders".to_owned(),
        created_unix_ms: 1,
        experiment: String::new(),
        directory: "/".into(),
        command: Vec::new(),
        machine: Machine::default(),
        status: Status::Interrupted,
        outcome: None,
        trials: 0,
    }
}

fn with() -> With {
    With {
        account: ACCOUNT,
        variables: [("DB_PASSWORD".to_owned(), "hunter2".to_owned())].into(),
        notify: None,
    }
}

fn inside(pod: &str) -> Inside {
    Inside {
        result: ID.to_owned(),
        uid: format!("uid-loadline-result-{ID}"),
        pod: pod.to_owned(),
    }
}

/// One pod of a controller: takes what is kept into an empty store, and runs the rest, until so many
/// records. Gives the ids that it knew before, and all that are in its store afterwards.
fn controller(server: &Server, pod: &str, repeats: u32, stop_after: u32) -> [Vec<String>; 2] {
    let inside = inside(pod);
    let (keeping, pieces) = Keeping::of(cluster(server, Some(&inside)), &inside).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path()).unwrap();
    take(&store, &pieces);
    let ids = |store: &Store| {
        let trials = store.trials(ID).unwrap();
        trials.into_iter().map(|t| t.id).collect::<Vec<_>>()
    };
    let before = ids(&store);
    store.copy_to(Box::new(keeping.clone()));
    let experiment = experiment(repeats);
    let demand = Demand {
        largest: searches::largest(&experiment),
        load: searches::load_memory(&experiment),
    };
    let of = cluster(server, Some(&inside));
    let mut host = Kubernetes::of(of, "orders:1", ACCOUNT, demand).unwrap();
    if pieces.len() == 1 {
        store.stand_on(ID, &host.machine(), Some("ground")).unwrap();
    }
    let matrix = Agenda::new(&experiment).matrix;
    let ran = run_in(&store, ID, (&mut host, experiment), &matrix, stop_after);
    if ran.is_ok() {
        let ended = Ended {
            status: Status::Done,
            outcome: None,
            code: 0,
            error: None,
            hints: Vec::new(),
        };
        keeping.ended(ended).unwrap();
    }
    let after = ids(&store);
    [before, after]
}

fn take(store: &Store, pieces: &[Piece]) {
    for piece in pieces {
        match piece {
            Piece::Begun(row) => store.take_result(row).unwrap(),
            Piece::Trial(finished) => assert!(store.take_trial(finished).unwrap(), "twice"),
            Piece::Machine(_) | Piece::Ended(_) => {}
        }
    }
}

fn sent(server: &Server) -> Outside {
    let outside = Outside::of(cluster(server, None), ID);
    let of = server.clone();
    // The first pod, which ends after three trials without a word.
    let first = std::thread::spawn(move || {
        while of.state().pods.is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        controller(&of, "pod-1", 5, 3)
    });
    let sent = outside.send(&row(), &with(), &mut |_| {}).unwrap();
    assert_eq!(sent, Sent::Works);
    let [before, after] = first.join().unwrap();
    assert_eq!(before, [""; 0]);
    assert!(after.len() >= 3, "{after:?}");
    outside
}

fn trials(pieces: &[Piece]) -> Vec<String> {
    let of = |piece: &Piece| match piece {
        Piece::Trial(finished) => Some(finished.record.id.clone()),
        _ => None,
    };
    pieces.iter().filter_map(of).collect()
}

#[test]
fn the_next_pod_goes_on_and_the_laptop_fetches_the_end() {
    let server = Server::start(hosts(3, "n", "Xeon"), 0);
    let outside = sent(&server);
    let finished = trials(&outside.pieces().unwrap());
    let [before, after] = controller(&server, "pod-2", 5, u32::MAX);
    assert_eq!(
        before, finished,
        "what was finished is known to the next pod"
    );
    assert_eq!(after.len(), 10, "ten trials, none twice");
    let pieces = outside.pieces().unwrap();
    // Kept as they end; the store has them as they began.
    let sorted = |ids: Vec<String>| ids.into_iter().collect::<BTreeSet<_>>();
    assert_eq!(sorted(trials(&pieces)), sorted(after));
    assert!(matches!(pieces[0], Piece::Begun(_)) && matches!(pieces[1], Piece::Machine(_)));
    assert!(matches!(pieces.last(), Some(Piece::Ended(end)) if end.status == Status::Done));
    outside.remove().unwrap();
    assert_eq!(left(&server), [""; 0]);
    let state = server.state();
    assert!(state.config_maps.is_empty() && state.secrets.is_empty());
}

#[test]
fn a_laptop_takes_over_in_the_middle_and_no_trial_runs_twice() {
    taken_over(&Server::start(hosts(3, "n", "Xeon"), 0));
}

/// Sent, taken over and run to its end.
pub(super) fn taken_over(server: &Server) {
    let outside = sent(server);
    assert_eq!(outside.stands().unwrap(), Stands::Works);
    outside.end().unwrap();
    let name = format!("loadline-result-{ID}");
    assert!(!server.state().pods.contains_key(&name), "its pod is gone");
    let pieces = outside.pieces().unwrap();
    let finished = trials(&pieces);
    assert!(finished.len() >= 3);
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    take(&store, &pieces);
    outside.remove().unwrap();
    assert_eq!(outside.stands().unwrap(), Stands::Gone);
    let experiment = experiment(5);
    let matrix = Agenda::new(&experiment).matrix;
    let mut host = host(server, number(2), searches::largest(&experiment)).unwrap();
    let known = store.trials(ID).unwrap();
    assert_eq!(known.len(), finished.len());
    let ran = run_in(&store, ID, (&mut host, experiment), &matrix, u32::MAX);
    assert_eq!(ran.unwrap().len(), 10);
    let all = store.trials(ID).unwrap();
    assert_eq!(all.len(), 10, "ten trials, none twice");
    assert_eq!(all[..known.len()], known);
    drop(host);
    assert_eq!(left(server), [""; 0]);
}

#[test]
fn what_a_pod_that_is_gone_left_running_is_removed_by_the_next() {
    let server = Server::start(hosts(3, "n", "Xeon"), 0);
    let first = inside("pod-1");
    let maker = crate::sweep::maker(Some(&first));
    let job = serde_json::json!({ "metadata": {
        "name": "loadline-of-the-first",
        "labels": { crate::manifest::CLIENT: maker.client },
        "annotations": { crate::manifest::OWNER: maker.owner },
    }, "spec": { "suspend": true } });
    let jobs = |server: &Server| server.state().jobs.keys().cloned().collect::<Vec<_>>();
    let name = "loadline-of-the-first".to_owned();
    server.state().jobs.insert(name.clone(), job);
    crate::sweep::sweep(&cluster(&server, Some(&first))).unwrap();
    assert_eq!(jobs(&server), [name], "its own it leaves alone");
    crate::sweep::sweep(&cluster(&server, Some(&inside("pod-2")))).unwrap();
    assert_eq!(jobs(&server), [""; 0]);
}

#[test]
fn of_two_that_work_on_one_result_the_second_ends() {
    let server = Server::start(hosts(1, "n", "Xeon"), 0);
    let keeping = |pod: &str| {
        let inside = inside(pod);
        Keeping::of(cluster(&server, Some(&inside)), &inside)
            .unwrap()
            .0
    };
    let (one, other) = (keeping("pod-1"), keeping("pod-2"));
    one.stand_on(&Machine::default(), None).unwrap();
    let refusal = other.stand_on(&Machine::default(), Some("x"));
    let refusal = refusal.unwrap_err().to_string();
    assert!(
        refusal.contains("another loadline works on it"),
        "{refusal}"
    );
    one.stand_on(&Machine::default(), None).unwrap();
}

#[test]
fn a_piece_whose_answer_was_lost_is_kept_once() {
    let server = Server::start(hosts(1, "n", "Xeon"), 0);
    let inside = inside("pod-1");
    let (keeping, _) = Keeping::of(cluster(&server, Some(&inside)), &inside).unwrap();
    server.state().loses_answers = 1;
    keeping.stand_on(&Machine::default(), Some("x")).unwrap();
    assert_eq!(server.state().config_maps.len(), 1);
}

#[test]
fn an_api_server_that_is_away_for_a_moment_ends_no_look_at_what_is_kept() {
    let server = Server::start(hosts(3, "n", "Xeon"), 0);
    let outside = sent(&server);
    server.state().is_away = 1;
    assert!(trials(&outside.pieces().unwrap()).len() >= 3);
}

#[test]
fn what_cannot_begin_is_told_and_leaves_nothing() {
    let server = Server::start(hosts(1, "n", "Xeon"), 0);
    let outside = Outside::of(cluster(&server, None), ID);
    let of = server.clone();
    let controller = std::thread::spawn(move || {
        while of.state().pods.is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let inside = inside("pod-1");
        let (keeping, _) = Keeping::of(cluster(&of, Some(&inside)), &inside).unwrap();
        let ended = Ended {
            status: Status::Failed,
            outcome: None,
            code: 3,
            error: Some("the image orders:1: ErrImagePull".to_owned()),
            hints: vec!["check the name".to_owned()],
        };
        keeping.ended(ended).unwrap();
    });
    let sent = outside.send(&row(), &with(), &mut |_| {}).unwrap();
    controller.join().unwrap();
    assert!(matches!(sent, Sent::Ended(ended) if ended.code == 3));
    assert_eq!(left(&server), [""; 0]);
    assert!(server.state().secrets.is_empty());
    let none = Outside::of(cluster(&server, None), "last").find();
    let why = none.map(|_| ()).unwrap_err().to_string();
    assert!(why.contains("none left a result"), "{why}");
}
