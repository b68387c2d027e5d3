//! What the store promises: finished trials stay, unfinished ones are known as such.

use std::cell::RefCell;
use std::rc::Rc;

use loadline_analysis::record::{Evidence, MachineDescription, SCHEMA, TrialVerdict};
use loadline_protocol::RunRefusal;
use loadline_trial::monotonic_ns;

use super::reading::{read_only, uri};
use super::*;

fn key(result: &str, label: &str, repeat: u32) -> TrialKey {
    let configuration = Configuration {
        label: label.to_owned(),
        memory: Some(loadline_sizing::Bytes::from_mib(u64::from(repeat) * 64)),
        ..Configuration::default()
    };
    TrialKey {
        result: result.to_owned(),
        purpose: TrialPurpose::Search,
        configuration,
        repeat,
        attempt: 1,
    }
}

fn record(id: &str, key: &TrialKey) -> TrialRecord {
    TrialRecord {
        schema: SCHEMA,
        id: id.to_owned(),
        result: key.result.clone(),
        purpose: key.purpose,
        configuration: key.configuration.clone(),
        repeat: key.repeat,
        started_at_unix_ms: unix_ms(),
        slo: "p99<50ms".parse().unwrap(),
        verdict: TrialVerdict::Pass,
        reason: format!("it kept the SLO at {}", monotonic_ns()).into(),
        objectives: Vec::new(),
        evidence: Evidence::default(),
    }
}

fn new_result(store: &Store) -> String {
    let new = NewResult {
        kind: ResultKind::Size,
        title: "app".to_owned(),
        experiment: "slo = \"p99<50ms\"".to_owned(),
        directory: PathBuf::from("/app"),
        command: vec!["loadline".to_owned()],
        machine: MachineDescription::default(),
    };
    store.create_result(&new).unwrap()
}

#[test]
fn a_killed_soak_keeps_its_log_and_other_trials_do_not() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let result = new_result(&store);
    let search = key(&result, "64Mi", 1);
    let soak = TrialKey {
        purpose: TrialPurpose::Soak,
        ..search.clone()
    };
    let begin = |key: &TrialKey| {
        let id = store.begin_trial(key).unwrap();
        fs::write(store.trial_log_path(&id), "what it had written").unwrap();
        id
    };
    let (search, soaked) = (begin(&search), begin(&soak));
    let dead = "UPDATE trial SET owner = 'loadline-ffffffff-1-1-1-x'";
    store.connection.execute(dead, []).unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let unfinished = |purpose| store.unfinished_trials(&result, purpose).unwrap();
    assert!(store.trial_log_path(&soaked).exists());
    assert!(!store.trial_log_path(&search).exists());
    let found = unfinished(TrialPurpose::Soak);
    assert_eq!((found.len(), found[0].id.as_str()), (1, soaked.as_str()));
    assert_eq!(found[0].configuration.memory, soak.configuration.memory);
    assert_eq!(unfinished(TrialPurpose::Matrix), []);
}

#[test]
fn soaks_of_an_answer_are_found_with_it_until_they_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let sized = new_result(&store);
    let mut before = sized.clone();
    for _ in 0..2 {
        let soak = new_result(&store);
        store.set_soaked(&soak, &before).unwrap();
        let key = key(&soak, "", 1);
        let id = store.begin_trial(&key).unwrap();
        store.finish_trial(&record(&id, &key)).unwrap();
        before = soak;
    }
    assert_eq!(store.soaks_of(&sized).unwrap().len(), 2, "one of a soak");
    assert_eq!(store.soaks_of(&before).unwrap(), []);
    let ended = ResultStatus::Done;
    store.set_status(&before, ended, None).unwrap();
    store.remove_result(&before).unwrap();
    assert_eq!(store.soaks_of(&sized).unwrap().len(), 1);
    // As in a store of an older loadline that is only read.
    store.connection.execute("DROP TABLE soaked", []).unwrap();
    assert_eq!(store.soaks_of(&sized).unwrap(), []);
}

#[test]
fn a_finished_trial_is_found_again_whatever_its_label() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let result = new_result(&store);
    let key = key(&result, "64Mi", 1);
    let id = store.begin_trial(&key).unwrap();
    assert_eq!(store.find_trial(&key).unwrap(), None);
    let written = record(&id, &key);
    store.finish_trial(&written).unwrap();
    let relabelled = TrialKey {
        configuration: Configuration {
            label: "other".into(),
            ..key.configuration.clone()
        },
        ..key
    };
    assert_eq!(
        store.find_trial(&relabelled).unwrap(),
        Some(written.clone())
    );
    assert_eq!(
        store.finished_trials(&result).unwrap(),
        std::slice::from_ref(&written)
    );
    assert_eq!(store.trial_by_prefix(&id[..20]).unwrap(), written);
    assert_eq!(store.result_by_prefix("last").unwrap().trials, 1);
}

#[test]
fn the_same_trial_is_never_stored_twice() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let key = key(&new_result(&store), "64Mi", 1);
    let first = store.begin_trial(&key).unwrap();
    let second = store.begin_trial(&key).unwrap();
    store.finish_trial(&record(&first, &key)).unwrap();
    assert!(store.finish_trial(&record(&second, &key)).is_err());
}

#[test]
fn what_a_dead_process_left_running_is_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let result = new_result(&store);
    store.begin_trial(&key(&result, "64Mi", 1)).unwrap();
    store
        .connection
        .execute_batch("UPDATE trial SET owner = 'loadline-ffffffff-1-1-1-x'; UPDATE result SET owner = 'loadline-ffffffff-1-1-1-x'")
        .unwrap();
    drop(store);
    let store = Store::open_or_create(directory.path()).unwrap();
    assert_eq!(
        store.result_by_prefix(&result).unwrap().status,
        ResultStatus::Interrupted
    );
    assert!(store.finished_trials(&result).unwrap().is_empty());
}

#[test]
fn an_owner_that_cannot_be_read_counts_as_alive() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let result = new_result(&store);
    let trial = store.begin_trial(&key(&result, "64Mi", 1)).unwrap();
    fs::write(store.trial_log_path(&trial), "what it has written").unwrap();
    let foreign = "UPDATE trial SET owner = 'pod-7 of node 3'; UPDATE result SET owner = ''";
    store.connection.execute_batch(foreign).unwrap();
    drop(store);
    let store = Store::open_or_create(directory.path()).unwrap();
    let status = store.result_by_prefix(&result).unwrap().status;
    assert_eq!(status, ResultStatus::Running);
    assert!(store.trial_log_path(&trial).exists());
    assert!(store.remove_result(&result).is_err());
}

#[test]
fn a_result_that_is_not_understood_takes_no_other_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let (known, unknown) = (new_result(&store), new_result(&store));
    let kind = "UPDATE result SET kind = '\"horoscope\"' WHERE id = ?1";
    store.connection.execute(kind, [&unknown]).unwrap();
    let rows = store.all_results().unwrap();
    assert_eq!((rows.len(), &rows[0].id), (1, &known));
    assert_eq!(store.unreadable_results().unwrap(), 1);
    assert_eq!(store.result_by_prefix("last").unwrap().id, known);
    let refused = store.result_by_prefix(&unknown).unwrap_err().to_string();
    assert!(refused.contains("horoscope"), "{refused}");
}

#[test]
fn a_store_of_a_newer_loadline_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    store
        .connection
        .pragma_update(None, "user_version", 99)
        .unwrap();
    drop(store);
    let refused = Store::open_or_create(directory.path()).unwrap_err();
    assert!(
        matches!(
            refused,
            StoreError::Newer {
                found: 99,
                known: 1,
                ..
            }
        ),
        "{refused}"
    );
}

#[test]
fn a_file_that_is_no_database_is_refused_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("loadline.db");
    fs::write(
        &path,
        "not a database, but a user's file, longer than a header of SQLite's is; so it stays",
    )
    .unwrap();
    let refused = Store::open_or_create(directory.path()).unwrap_err();
    assert!(matches!(refused, StoreError::Database { .. }), "{refused}");
    assert!(
        fs::read_to_string(&path)
            .unwrap()
            .starts_with("not a database")
    );
}

#[test]
fn ids_are_found_by_their_start_unless_it_fits_several() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let ids = [new_result(&store), new_result(&store)];
    let common = ids[0]
        .chars()
        .zip(ids[1].chars())
        .take_while(|(a, b)| a == b)
        .count();
    assert!(matches!(
        store.result_by_prefix(&ids[0][..common]),
        Err(StoreError::Ambiguous { count: 2, .. })
    ));
    assert_eq!(
        store.result_by_prefix(&ids[1][..=common]).unwrap().id,
        ids[1]
    );
    assert!(matches!(
        store.result_by_prefix("nothing"),
        Err(StoreError::Unknown { .. })
    ));
    assert_eq!(store.all_results().unwrap().len(), 2);
}

#[test]
fn a_store_is_read_without_a_change_its_log_of_changes_included() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("a %3f state");
    let id = new_result(&Store::open_or_create(&state).unwrap());
    let path = state.join("loadline.db");
    assert!(uri(&path).ends_with("a%20%253f%20state/loadline.db?immutable=1"));
    // Left by a dead writer: its last changes are only in the WAL file.
    let writer = Store::open_or_create(&state).unwrap();
    let second = new_result(&writer);
    assert!(!uri(&path).contains('?'), "the log counts");
    let copy = directory.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(&state).unwrap().flatten() {
        if entry.path().is_file() {
            fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
        }
    }
    drop(writer);
    for (directory, expected) in [(&state, &second), (&copy, &second)] {
        let path = directory.join("loadline.db");
        let connection = Connection::open_with_flags(uri(&path), read_only()).unwrap();
        let store = Store {
            directory: directory.clone(),
            connection,
            copies: None,
        };
        let ids: Vec<String> = store
            .all_results()
            .unwrap()
            .into_iter()
            .map(|r| r.id)
            .collect();
        assert_eq!(ids, [expected.clone(), id.clone()]);
        store.set_status(&id, ResultStatus::Done, None).unwrap_err();
    }
}

#[test]
fn a_trial_whose_log_is_not_on_disk_is_not_finished() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let key = key(&new_result(&store), "64Mi", 1);
    let id = store.begin_trial(&key).unwrap();
    // No disk takes a pipe: fsync(2) refuses it.
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, store.trial_log_path(&id), fifo, mode, 0).unwrap();
    let refused = store.finish_trial(&record(&id, &key)).unwrap_err();
    assert!(matches!(refused, StoreError::Log { .. }), "{refused}");
    assert_eq!(store.find_trial(&key).unwrap(), None);
    fs::remove_file(store.trial_log_path(&id)).unwrap();
    fs::write(store.trial_log_path(&id), "evidence").unwrap();
    store.finish_trial(&record(&id, &key)).unwrap();
    assert!(store.find_trial(&key).unwrap().is_some());
}

#[test]
fn last_is_what_began_last_also_when_the_clock_went_back() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let ids = [new_result(&store), new_result(&store), new_result(&store)];
    let trial = |result: &str, repeat| {
        let key = key(result, "64Mi", repeat);
        let id = store.begin_trial(&key).unwrap();
        store.finish_trial(&record(&id, &key)).unwrap();
        id
    };
    let trials = [trial(&ids[0], 1), trial(&ids[0], 2)];
    let far = "UPDATE result SET created_unix_ms = 9e15 WHERE id = ?1";
    store.connection.execute(far, [&ids[0]]).unwrap();
    let far = "UPDATE trial SET started_unix_ms = 9e15 WHERE id = ?1";
    store.connection.execute(far, [&trials[0]]).unwrap();
    assert_eq!(store.result_by_prefix("last").unwrap().id, ids[2]);
    let listed: Vec<_> = store
        .all_results()
        .unwrap()
        .into_iter()
        .map(|r| r.id)
        .collect();
    assert!(listed.iter().eq(ids.iter().rev()), "{listed:?}");
    let ran: Vec<_> = store
        .finished_trials(&ids[0])
        .unwrap()
        .into_iter()
        .map(|t| t.id)
        .collect();
    assert_eq!(ran, trials);
}

#[test]
fn a_link_in_the_place_of_the_database_is_refused_and_its_target_kept() {
    let directory = tempfile::tempdir().unwrap();
    let (state, victim) = (
        directory.path().join("state"),
        directory.path().join("victim"),
    );
    fs::create_dir(&state).unwrap();
    fs::write(&victim, "").unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::symlink(&victim, state.join("loadline.db")).unwrap();
    let refused = Store::open_or_create(&state).unwrap_err();
    assert!(matches!(refused, StoreError::Database { .. }), "{refused}");
    let mode = fs::metadata(&victim).unwrap().permissions().mode();
    assert_eq!((mode & 0o777, fs::read(&victim).unwrap()), (0o644, vec![]));
}

#[test]
fn a_state_directory_whose_way_others_can_change_is_refused() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIP a_state_directory_whose_way_others_can_change_is_refused: not root");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let theirs = directory.path().join("theirs");
    let state = theirs.join("state");
    Store::open_or_create(&state).unwrap();
    // Its owner renames `state` and puts another directory there, with a link to any file as its
    // database.
    std::os::unix::fs::chown(&theirs, Some(64_998), Some(64_998)).unwrap();
    let refused = Store::open_or_create(&state).unwrap_err();
    let StoreError::Place { source, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(source.path, theirs);
    std::os::unix::fs::chown(&theirs, Some(0), Some(0)).unwrap();
    std::os::unix::fs::chown(&state, Some(64_998), Some(64_998)).unwrap();
    let refused = Store::open_or_create(&state).unwrap_err();
    assert!(matches!(refused, StoreError::Place { .. }), "{refused}");
}

#[test]
fn a_removed_result_leaves_nothing_and_others_stay() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let finished = |result: &str| {
        let key = key(result, "64Mi", 1);
        let id = store.begin_trial(&key).unwrap();
        fs::write(store.trial_log_path(&id), [0; 1000]).unwrap();
        store.finish_trial(&record(&id, &key)).unwrap();
        store.set_ground(result, "ground").unwrap();
        fs::create_dir_all(store.cache_directory(result)).unwrap();
        fs::write(store.cache_directory(result).join("app.jsa"), [0; 500]).unwrap();
        store.set_status(result, ResultStatus::Done, None).unwrap();
        id
    };
    let (old, kept) = (new_result(&store), new_result(&store));
    let (of_old, of_kept) = (finished(&old), finished(&kept));
    let size = store
        .bytes_of(&store.result_by_prefix(&old).unwrap())
        .unwrap();
    assert!(size > 1500, "{size}");
    let removed = store.remove_result(&old).unwrap();
    assert_eq!((removed.bytes, removed.files), (1500, 2));
    assert_eq!(removed.failures, [""; 0]);
    assert!(matches!(
        store.result_by_prefix(&old),
        Err(StoreError::Unknown { .. })
    ));
    assert!(!store.trial_log_path(&of_old).exists() && !store.cache_directory(&old).exists());
    assert_eq!(store.ground_fingerprint(&old).unwrap(), None);
    assert_eq!(store.finished_trials(&kept).unwrap().len(), 1);
    assert!(store.trial_log_path(&of_kept).exists() && store.cache_directory(&kept).exists());
    assert_eq!(store.remove_orphans().unwrap(), RemovalTotals::default());
}

#[test]
fn a_result_somebody_works_on_is_not_removed_and_one_of_the_dead_is() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let result = new_result(&store);
    let trial = store.begin_trial(&key(&result, "64Mi", 1)).unwrap();
    fs::write(store.trial_log_path(&trial), "half of it").unwrap();
    let refused = store.remove_result(&result);
    assert!(
        matches!(refused, Err(StoreError::InUse { .. })),
        "{refused:?}"
    );
    assert!(store.trial_log_path(&trial).exists());
    // A done result with a running trial is in use too.
    store.set_status(&result, ResultStatus::Done, None).unwrap();
    assert!(store.remove_result(&result).is_err());
    for table in ["trial", "result"] {
        let dead = format!("UPDATE {table} SET owner = 'loadline-ffffffff-1-1-1-x'");
        store.connection.execute(&dead, []).unwrap();
    }
    store.remove_result(&result).unwrap();
    assert!(!store.trial_log_path(&trial).exists());
    // Another transaction can begin: none was left open.
    new_result(&store);
}

#[test]
fn files_without_a_row_are_swept() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let result = new_result(&store);
    let trial = store.begin_trial(&key(&result, "64Mi", 1)).unwrap();
    fs::write(store.trial_log_path(&trial), "it runs").unwrap();
    fs::write(store.trial_log_path("0199"), [0; 10]).unwrap();
    fs::create_dir_all(store.state_directory().join("logs/0198")).unwrap();
    fs::create_dir_all(store.cache_directory("0197").join("deep")).unwrap();
    fs::write(store.cache_directory("0197").join("deep/x"), [0; 5]).unwrap();
    let removed = store.remove_orphans().unwrap();
    assert_eq!((removed.files, removed.bytes), (3, 15));
    assert!(store.trial_log_path(&trial).exists());
    assert!(!store.trial_log_path("0199").exists() && !store.cache_directory("0197").exists());
}

/// Stores finished trials until it refuses.
#[derive(Debug, Clone, Default)]
struct Kept {
    trials: Rc<RefCell<Vec<FinishedTrial>>>,
    refuses: bool,
}

impl TrialCopies for Kept {
    fn keep_trial(&self, finished: &FinishedTrial) -> Result<(), RunRefusal> {
        if self.refuses {
            return Err(RunRefusal::new("keeping", "the cluster is away", "wait"));
        }
        self.trials.borrow_mut().push(finished.clone());
        Ok(())
    }

    fn stand_on(&self, _: &MachineDescription, _: Option<&str>) -> Result<(), RunRefusal> {
        Ok(())
    }
}

#[test]
fn a_result_goes_from_store_to_store_and_no_trial_of_it_is_there_twice() {
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [mut one, other] = places
        .each_ref()
        .map(|place| Store::open_or_create(place.path()).unwrap());
    let kept = Kept::default();
    one.copy_to(Box::new(kept.clone()));
    let result = new_result(&one);
    let machine = MachineDescription {
        cpus: 4,
        ..MachineDescription::default()
    };
    one.stand_on(&result, &machine, Some("ground")).unwrap();
    let first = key(&result, "64Mi", 1);
    let second = TrialKey {
        attempt: 2,
        ..first.clone()
    };
    for key in [&first, &second] {
        let id = one.begin_trial(key).unwrap();
        one.finish_trial(&record(&id, key)).unwrap();
    }
    let finished = kept.trials.borrow().clone();
    let attempts: Vec<u32> = finished.iter().map(|f| f.attempt).collect();
    assert_eq!(attempts, [1, 2]);

    let row = one.result_by_prefix(&result).unwrap();
    assert_eq!((row.machine.cpus, row.trials), (4, 2));
    assert_eq!(
        one.ground_fingerprint(&result).unwrap().as_deref(),
        Some("ground")
    );
    // As it is kept: as JSON.
    let text = serde_json::to_string(&(&row, &finished)).unwrap();
    let (row, finished): (ResultRow, Vec<FinishedTrial>) = serde_json::from_str(&text).unwrap();
    let incoming = other.take_result(&row).unwrap();
    let taken: Vec<bool> = finished
        .iter()
        .map(|f| incoming.take_trial(f).unwrap())
        .collect();
    assert_eq!(taken, [true, true]);
    assert!(!incoming.take_trial(&finished[0]).unwrap(), "it is there");
    assert_eq!(
        other.finished_trials(&result).unwrap(),
        one.finished_trials(&result).unwrap()
    );
    for (key, finished) in [(&first, &finished[0]), (&second, &finished[1])] {
        let found = other.find_trial(key).unwrap();
        assert_eq!(found.as_ref(), Some(&finished.record));
    }
    let there = other.result_by_prefix(&result).unwrap();
    assert_eq!(
        (there.status, there.machine),
        (ResultStatus::Interrupted, row.machine)
    );
}

#[test]
fn a_trial_of_which_no_copy_could_be_kept_ends_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open_or_create(directory.path()).unwrap();
    store.copy_to(Box::new(Kept {
        refuses: true,
        ..Kept::default()
    }));
    let key = key(&new_result(&store), "64Mi", 1);
    let id = store.begin_trial(&key).unwrap();
    let refused = store.finish_trial(&record(&id, &key)).unwrap_err();
    assert!(matches!(refused, StoreError::Copy(_)), "{refused}");
}

#[test]
fn where_a_result_is_away_is_known_until_it_is_here_or_removed() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let result = new_result(&store);
    let place = AwayLocation {
        context: "staging".to_owned(),
        namespace: "sizing".to_owned(),
    };
    assert_eq!(store.away_location(&result).unwrap(), None);
    store.set_away(&result, Some(&place)).unwrap();
    assert_eq!(store.away_location(&result).unwrap(), Some(place.clone()));
    store.set_away(&result, None).unwrap();
    assert_eq!(store.away_location(&result).unwrap(), None);
    store.set_away(&result, Some(&place)).unwrap();
    store
        .set_status(&result, ResultStatus::Interrupted, None)
        .unwrap();
    store.remove_result(&result).unwrap();
    assert_eq!(store.away_location(&result).unwrap(), None);
    // An older loadline has made the store, and this one may only read it.
    store.connection.execute_batch("DROP TABLE away").unwrap();
    assert_eq!(store.away_location(&result).unwrap(), None);
}

fn staging() -> AwayLocation {
    AwayLocation {
        context: "staging".to_owned(),
        namespace: "sizing".to_owned(),
    }
}

fn foreign() -> (ResultRow, FinishedTrial) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let key = key(&new_result(&store), "64Mi", 1);
    let id = store.begin_trial(&key).unwrap();
    let finished = FinishedTrial {
        attempt: 1,
        record: record(&id, &key),
    };
    (store.result_by_prefix(&key.result).unwrap(), finished)
}

#[test]
fn a_cluster_changes_no_result_that_was_not_sent_there() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let own = new_result(&store);
    store
        .set_status(&own, ResultStatus::Done, Some("{}"))
        .unwrap();
    let before = store.result_by_prefix(&own).unwrap();
    let (mut row, _) = foreign();
    row.id.clone_from(&own);
    let other_place = AwayLocation {
        namespace: "payments".to_owned(),
        ..staging()
    };
    let refuses = |store: &Store| {
        let refused = [
            store.take_result(&row).map(drop),
            store.take_from_cluster(&row, &staging()),
            store.incoming_result(&own).map(drop),
        ];
        for refused in refused {
            assert!(
                matches!(refused, Err(StoreError::NotAway { .. })),
                "{refused:?}"
            );
        }
    };
    refuses(&store);
    assert_eq!(store.result_by_prefix(&own).unwrap(), before);
    assert_eq!(store.away_location(&own).unwrap(), None);
    // It was sent away, to another place than the offered one.
    store.set_away(&own, Some(&other_place)).unwrap();
    let refused = store.take_from_cluster(&row, &staging());
    assert!(
        matches!(refused, Err(StoreError::NotAway { .. })),
        "{refused:?}"
    );
    assert_eq!(
        store.away_location(&own).unwrap(),
        Some(other_place.clone())
    );
    // The place where it is offers it: its own text stays.
    store.take_from_cluster(&row, &other_place).unwrap();
    assert_eq!(store.result_by_prefix(&own).unwrap(), before);
    assert_eq!(store.is_confirmed(&own).unwrap(), None, "it was begun here");
}

#[test]
fn a_trial_goes_into_the_result_with_which_it_came_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let own = new_result(&store);
    let (row, mut finished) = foreign();
    let incoming = store.take_result(&row).unwrap();
    finished.record.result.clone_from(&own);
    let refused = incoming.take_trial(&finished);
    assert!(
        matches!(refused, Err(StoreError::OtherResult { .. })),
        "{refused:?}"
    );
    assert_eq!(store.finished_trials(&own).unwrap(), []);
}

#[test]
fn an_id_that_is_no_uuid_is_refused_from_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let (good, mut finished) = foreign();
    let upper = good.id.to_uppercase();
    for odd in [
        "",
        "last",
        "../../etc",
        "/etc/passwd",
        "a/b",
        "x\u{1b}[2J",
        &upper,
    ] {
        let row = ResultRow {
            id: odd.to_owned(),
            ..good.clone()
        };
        for refused in [
            store.take_result(&row).map(drop),
            store.take_from_cluster(&row, &staging()),
        ] {
            let Err(error @ StoreError::ForeignId { .. }) = refused else {
                panic!("{odd:?}: {refused:?}");
            };
            assert!(!error.to_string().contains('\u{1b}'), "{error}");
        }
        let incoming = store.take_result(&good);
        let incoming = incoming.unwrap_or_else(|_| {
            store.set_away(&good.id, Some(&staging())).unwrap();
            store.incoming_result(&good.id).unwrap()
        });
        finished.record.id = odd.to_owned();
        let refused = incoming.take_trial(&finished);
        assert!(
            matches!(refused, Err(StoreError::ForeignId { .. })),
            "{odd:?}"
        );
    }
    assert_eq!(store.all_results().unwrap().len(), 1);
}

#[test]
fn what_came_from_a_cluster_is_confirmed_before_it_runs() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let (row, _) = foreign();
    store.take_from_cluster(&row, &staging()).unwrap();
    assert_eq!(store.away_location(&row.id).unwrap(), Some(staging()));
    assert_eq!(store.is_confirmed(&row.id).unwrap(), Some(false));
    // Found once more before it was taken over.
    store.set_confirmed(&row.id).unwrap();
    store.take_from_cluster(&row, &staging()).unwrap();
    assert_eq!(store.is_confirmed(&row.id).unwrap(), Some(true));
    store.remove_result(&row.id).unwrap();
    assert_eq!(store.is_confirmed(&row.id).unwrap(), None);
}

#[test]
fn no_trial_that_came_from_a_cluster_is_reused_in_another_result() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let (row, finished) = foreign();
    store.take_from_cluster(&row, &staging()).unwrap();
    let incoming = store.incoming_result(&row.id).unwrap();
    incoming.take_trial(&finished).unwrap();
    incoming
        .take_machine(&MachineDescription::default(), Some("ground"))
        .unwrap();
    let wanted = key(&new_result(&store), "64Mi", 1);
    assert_eq!(store.find_alike("ground", &wanted).unwrap(), None);
}
