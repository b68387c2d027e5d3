//! Users with sessions, as the server sees them: cookies, connections, pauses, and the rate.

mod plans;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use loadline_load::{
    LoadModel, LoadOutcome, LoadPlan, RequestSpec, ThinkTime, Users, WeightedRequest, run,
};

/// A request as the shop saw it.
#[derive(Debug, Clone)]
struct Seen {
    path: String,
    /// The cookie it came with.
    came_with: Option<String>,
    /// That, or the one it was given.
    session: String,
    connection: u64,
    at: Instant,
}

/// Gives a session to whoever has none.
struct Shop {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Shop {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (all, given) = (Arc::clone(&seen), Arc::new(AtomicU64::new(0)));
        thread::spawn(move || {
            for (connection, stream) in listener.incoming().flatten().enumerate() {
                let (all, given) = (Arc::clone(&all), Arc::clone(&given));
                thread::spawn(move || serve(stream, connection as u64, &all, &given));
            }
        });
        Self { address, seen }
    }

    fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().expect("no thread has panicked"))
    }
}

fn serve(stream: TcpStream, connection: u64, all: &Mutex<Vec<Seen>>, given: &AtomicU64) {
    stream.set_nodelay(true).expect("it is a socket");
    let mut lines = BufReader::new(stream.try_clone().expect("it is a socket")).lines();
    let mut next = || lines.next()?.ok();
    while let Some(first) = next() {
        let at = Instant::now();
        let mut came_with = None;
        while let Some(line) = next().filter(|line| !line.is_empty()) {
            if let Some(value) = line.strip_prefix("Cookie: SID=") {
                came_with = Some(value.to_owned());
            }
        }
        let new = || given.fetch_add(1, Ordering::SeqCst).to_string();
        let session = came_with.clone().unwrap_or_else(new);
        let cookie = match came_with {
            None => format!("Set-Cookie: SID={session}; Path=/; HttpOnly\r\n"),
            Some(_) => String::new(),
        };
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        all.lock().expect("no thread has panicked").push(Seen {
            path,
            came_with,
            session,
            connection,
            at,
        });
        let answer = format!("HTTP/1.1 200 OK\r\n{cookie}Content-Length: 0\r\n\r\n");
        if (&stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn weighted(path: &str, weight: f64, is_first: bool) -> WeightedRequest {
    WeightedRequest {
        name: path.to_owned(),
        weight,
        is_first,
        request: RequestSpec::for_get(path),
    }
}

/// Sessions of five requests, the first of which is a login.
fn plan(shop: &Shop, model: LoadModel, connections: u32, pause: Duration) -> LoadPlan {
    LoadPlan {
        mix: vec![
            weighted("/login", 9.0, true),
            weighted("/list", 3.0, false),
            weighted("/order", 1.0, false),
        ],
        connections,
        think: Some(ThinkTime {
            from: pause,
            to: pause,
        }),
        users: Some(Users {
            requests: 5.0,
            present: Vec::new(),
        }),
        ..plans::plan(shop.address, model)
    }
}

fn go(plan: &LoadPlan) -> LoadOutcome {
    let outcome = run(plan, &Arc::new(AtomicBool::new(false)), &mut |_| {});
    outcome.expect("the plan can be run")
}

fn by_session(seen: &[Seen]) -> BTreeMap<&str, Vec<&Seen>> {
    let mut sessions = BTreeMap::<_, Vec<_>>::new();
    for request in seen {
        sessions
            .entry(request.session.as_str())
            .or_default()
            .push(request);
    }
    sessions
}

#[test]
fn each_user_has_cookies_a_connection_and_pauses_and_the_rate_is_kept() {
    let shop = Shop::open();
    let pause = Duration::from_millis(100);
    let rate = 400.0;
    let model = LoadModel::at_constant_rate(rate, Duration::from_secs(4));
    let first = plan(&shop, model, 1000, pause);
    let outcome = go(&first);
    let seen = shop.seen();
    assert_eq!((outcome.measure.ok, seen.len()), (1600, 1600));
    assert_eq!(outcome.measure.cut_pauses, 0);
    let sessions = by_session(&seen);
    assert_eq!(outcome.measure.sessions, sessions.len() as u64);
    for requests in sessions.values() {
        let connections: BTreeSet<_> = requests.iter().map(|r| r.connection).collect();
        assert_eq!(connections.len(), 1, "{requests:?}");
        for (nth, request) in requests.iter().enumerate() {
            assert_eq!(request.path == "/login", nth == 0, "{requests:?}");
            assert_eq!(request.came_with.is_none(), nth == 0);
        }
        for pair in requests.windows(2) {
            assert!(pair[1].at - pair[0].at >= pause, "{pair:?}");
        }
    }
    // From the second second on as many come as leave: a fifth of the requests are logins.
    let begin = seen[0].at + Duration::from_secs(1);
    let late = seen.iter().filter(|request| request.at > begin);
    let (logins, others): (Vec<_>, Vec<_>) = late.partition(|r| r.path == "/login");
    let share = logins.len() as f64 / (logins.len() + others.len()) as f64;
    assert!((share - 0.2).abs() < 0.05, "{share}");
    let lists = others.iter().filter(|r| r.path == "/list").count() as f64;
    let share = lists / others.len() as f64;
    assert!((share - 0.75).abs() < 0.07, "{share}");

    // The next phase takes the users over: present users do not log in again.
    let mut second = first;
    second.model = LoadModel::at_constant_rate(rate, Duration::from_secs(1));
    let present = outcome.users.len();
    assert!(present >= 20, "{present}");
    second.users = Some(Users {
        requests: 5.0,
        present: outcome.users,
    });
    let outcome = go(&second);
    let seen = shop.seen();
    let logins = seen.iter().filter(|r| r.path == "/login").count();
    let known = seen
        .iter()
        .filter(|r| sessions.contains_key(r.session.as_str()));
    assert_eq!(outcome.measure.sessions, logins as u64);
    assert!(known.count() >= present / 2);
    // Where a busy machine delays users, others come instead.
    assert!((logins as f64 / seen.len() as f64) < 0.5, "{logins}");
}

#[test]
fn where_connections_run_out_pauses_are_cut_and_no_request_waits() {
    let shop = Shop::open();
    let model = LoadModel::at_constant_rate(100.0, Duration::from_secs(2));
    let plan = plan(&shop, model, 10, Duration::from_secs(30));
    let totals = go(&plan).measure;
    assert_eq!(totals.ok, 200);
    let found = (totals.sessions, totals.cut_pauses);
    assert_eq!(found.0 + found.1, 200, "{found:?}");
    assert!(found.1 > 100, "{found:?}");
}

#[test]
fn in_a_closed_model_a_new_user_takes_the_place_of_one_who_leaves() {
    let shop = Shop::open();
    let requests = 500;
    let plan = plan(
        &shop,
        LoadModel::ClosedRequests { requests },
        5,
        Duration::ZERO,
    );
    let totals = go(&plan).measure;
    let seen = shop.seen();
    let sessions = by_session(&seen);
    assert_eq!((totals.ok, seen.len()), (requests, 500));
    assert_eq!(totals.sessions, sessions.len() as u64);
    let connections: BTreeSet<_> = seen.iter().map(|r| r.connection).collect();
    assert_eq!(connections.len(), sessions.len());
    let mean = 500.0 / sessions.len() as f64;
    assert!((mean / 5.0 - 1.0).abs() < 0.35, "{mean}");
}

#[test]
fn what_cannot_be_is_refused() {
    let shop = Shop::open();
    let model = LoadModel::at_constant_rate(10.0, Duration::from_secs(1));
    let whole = plan(&shop, model, 10, Duration::ZERO);
    let refused = |change: &dyn Fn(&mut LoadPlan)| {
        let mut plan = whole.clone();
        change(&mut plan);
        plan.check_plan().expect_err("it cannot be").to_string()
    };
    let said = refused(&|plan| plan.users = None);
    assert!(said.contains("--session 8"), "{said}");
    let said = refused(&|plan| {
        plan.users = None;
        plan.think = None;
    });
    assert!(said.contains("leave `first` out"), "{said}");
    let said = refused(&|plan| plan.mix.truncate(1));
    assert!(said.contains("every request is the first"), "{said}");
    let said = refused(&|plan| {
        let header = ("cookie".to_owned(), "a=1".to_owned());
        plan.mix[1].request.headers.push(header);
    });
    assert!(said.contains("Cookie header"), "{said}");
    let said = refused(&|plan| {
        plan.users = Some(Users {
            requests: 0.5,
            present: Vec::new(),
        });
    });
    assert!(said.contains("at least 1 request"), "{said}");
}
