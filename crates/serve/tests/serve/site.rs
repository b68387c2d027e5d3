//! A server over a separate store, and requests as bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadline_analysis::record::{
    ApplicationVersion, Commit, MachineDescription, TrialPhase, TrialPurpose,
};
use loadline_cgroup::MemorySample;
use loadline_protocol::log::{ChunkContent, EventLog};
use loadline_protocol::{TrialEvent, TrialProgress};
use loadline_report::ResultView;
use loadline_runner::store::{NewResult, ResultKind, ResultRow, ResultStatus, Store, TrialKey};
use loadline_serve::access::AccessRules;
use loadline_serve::{ResultReading, StateServer};
use loadline_sizing::Bytes;
use loadline_trial::samples::{self, SampleRow};

use crate::fixture;

/// A server that runs until it is dropped.
pub struct Site {
    place: tempfile::TempDir,
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// An answer.
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: String,
}

pub struct Trial {
    log: EventLog,
}

/// A stream of events.
pub struct Followed {
    stream: TcpStream,
    text: String,
}

fn view(store: &Store, row: &ResultRow) -> Result<ResultView, String> {
    let trials = store.finished_trials(&row.id).map_err(|e| e.to_string())?;
    Ok(ResultView {
        id: row.id.clone(),
        title: row.title.clone(),
        machine: row.machine.clone(),
        trials,
        ..fixture::search()
    })
}

/// What the tests bring along.
pub const TOKEN: &str = "0123456789abcdef";

impl Site {
    pub fn new() -> Self {
        let access = AccessRules::new(Some(TOKEN.to_owned())).expect("rules");
        let place = tempfile::tempdir().expect("a directory");
        let reading = ResultReading {
            view,
            answer: |row| row.outcome.clone().unwrap_or_default(),
            left: |_, row| Some(format!("{} trials so far", row.trials)),
        };
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = StateServer::listen_on(any, place.path().to_owned(), reading, access);
        let server = server.expect("a free port");
        let address = server.listen_address().expect("an address");
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            server
                .run(|| asked.load(Ordering::Relaxed))
                .expect("threads");
        });
        Self {
            place,
            address,
            is_over,
            thread: Some(thread),
        }
    }

    fn store(&self) -> Store {
        Store::open_or_create(self.place.path()).expect("a store")
    }

    fn result(&self, store: &Store, version: Option<ApplicationVersion>) -> String {
        let new = NewResult {
            kind: ResultKind::Size,
            title: "orders".to_owned(),
            experiment: String::new(),
            directory: "/srv".into(),
            command: Vec::new(),
            machine: MachineDescription {
                version,
                ..fixture::machine()
            },
        };
        store.create_result(&new).expect("a result")
    }

    /// A finished result with this many trials of the fixture's search; returns its id. Every third
    /// has no version, every third its commit, every third its name.
    pub fn ended(&self, number: u64, trials: usize) -> String {
        let store = self.store();
        let version = match number % 3 {
            0 => None,
            1 => Some(ApplicationVersion {
                name: None,
                commit: Some(Commit {
                    id: format!("{number:040x}").chars().rev().collect(),
                    is_dirty: number.is_multiple_of(2),
                }),
            }),
            _ => Some(ApplicationVersion {
                name: Some(format!("1.4.{number}")),
                commit: None,
            }),
        };
        let id = self.result(&store, version);
        let records = fixture::search().trials;
        for (i, record) in records.iter().cycle().take(trials).enumerate() {
            let key = TrialKey {
                result: id.clone(),
                purpose: record.purpose,
                configuration: record.configuration.clone(),
                repeat: u32::try_from(i).expect("few"),
                attempt: 1,
            };
            let mut record = record.clone();
            record.id = store.begin_trial(&key).expect("begun");
            store.finish_trial(&record).expect("finished");
        }
        let outcome = format!("answer {number}");
        let done = store.set_status(&id, ResultStatus::Done, Some(&outcome));
        done.expect("done");
        id
    }

    /// A result that this process runs; gives its id.
    pub fn running(&self) -> String {
        self.result(&self.store(), None)
    }

    /// Says where a result stands; this process owns it.
    pub fn stands(&self, result: &str, status: ResultStatus) {
        let set = self.store().set_status(result, status, None);
        set.expect("a status");
    }

    pub fn running_trial(&self, result: &str) -> Trial {
        let store = self.store();
        let record = &fixture::search().trials[0];
        let key = TrialKey {
            result: result.to_owned(),
            purpose: TrialPurpose::Search,
            configuration: record.configuration.clone(),
            repeat: 1,
            attempt: 1,
        };
        let id = store.begin_trial(&key).expect("begun");
        let file = std::fs::File::options()
            .create_new(true)
            .append(true)
            .read(true)
            .open(store.trial_log_path(&id));
        let log = EventLog::begin_log(file.expect("a log")).expect("empty");
        Trial { log }
    }

    /// The address of a page, as a link that lets the browser in.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}?token={TOKEN}", self.address)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
        ))
    }

    pub fn send(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("answered");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok());
        Answer {
            status: status.expect("a status"),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    pub fn follow(&self) -> Followed {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        let request = format!(
            "GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let patience = stream.set_read_timeout(Some(Duration::from_millis(200)));
        patience.expect("a timeout");
        Followed {
            stream,
            text: String::new(),
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<String> {
        let mut pairs = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = pairs.find(|(of, _)| of.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned())
    }
}

impl Trial {
    /// Writes what a trial in its measure phase has written.
    pub fn measures(&self) {
        let event = |event: TrialEvent| self.log.append_event(&event).expect("written");
        let begin = 5_000_000_000_000;
        event(TrialEvent::Phase {
            phase: TrialPhase::Start,
            at_ns: begin,
        });
        let line = b"<b>ready</b> password=hunter2\n";
        self.log.append_whole_chunk(ChunkContent::Output, 0, line);
        event(TrialEvent::Phase {
            phase: TrialPhase::Measure,
            at_ns: begin + 2_000_000_000,
        });
        let row = |i: u64| SampleRow {
            at_ns: begin + i * 100_000_000,
            cpu: Some(Duration::from_millis(40 * i)),
            throttled: Some(Duration::from_millis(5 * i)),
            memory: Some(MemorySample {
                usage: Some(Bytes::from_bytes((200 << 20) + (i << 16))),
                ..MemorySample::default()
            }),
            ..SampleRow::default()
        };
        let rows: Vec<SampleRow> = (1..220).map(row).collect();
        self.log
            .append_whole_chunk(ChunkContent::Samples, 0, &samples::encode_rows(&rows));
        for second in 1..=20 {
            event(TrialEvent::Progress(TrialProgress {
                phase: TrialPhase::Measure,
                elapsed: Duration::from_secs(second),
                p99: Some(Duration::from_millis(20 + second % 5)),
                rate: Some(300.0),
            }));
        }
    }
}

impl Followed {
    /// All that has come when this text is in it.
    pub fn until(&mut self, wanted: &str, patience: Duration) -> String {
        let begin = Instant::now();
        let mut block = vec![0; 64 << 10];
        while !self.text.contains(wanted) {
            assert!(
                begin.elapsed() < patience,
                "{wanted} did not come: {}",
                self.text
            );
            match self.stream.read(&mut block) {
                Ok(0) => panic!("the stream ended: {}", self.text),
                Ok(length) => self
                    .text
                    .push_str(&String::from_utf8_lossy(&block[..length])),
                // Nothing yet.
                Err(_) => {}
            }
        }
        self.text.clone()
    }
}
