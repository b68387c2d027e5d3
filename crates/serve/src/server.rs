//! Requests in, answers out.
//!
//! Owns the listener, the threads that answer, and the limits on connections and threads. One
//! thread accepts connections and reads heads, and never blocks; blocking work runs in separate
//! threads. A failed accept, or a head too many, closes the connection with the oldest incomplete
//! head: an honest client sends it at once.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use loadline_report::live;
use loadline_runner::store::Store;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::ResultReading;
use crate::access::{AccessDecision, AccessRules};
use crate::feed::Feed;
use crate::http::{HttpAnswer, PendingRequest, RequestHead, event_stream_head};
use crate::routes::{self, Route, RouteAnswer};

/// Most requests answered at the same time, not counting event streams.
const ANSWERS: usize = 32;
const READERS: usize = 200;
/// Most connections with an incomplete head.
const HEADS: usize = 256;
const PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};
/// Wait while all answers are busy, or after the system gave no connection and none could be closed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

pub struct StateServer {
    listener: TcpListener,
    shared: Arc<SharedServer>,
}

struct SharedServer {
    directory: PathBuf,
    reading: ResultReading,
    access: AccessRules,
    feed: Arc<Feed>,
    busy: AtomicUsize,
    is_over: AtomicBool,
}

impl StateServer {
    pub fn listen_on(
        address: SocketAddr,
        directory: PathBuf,
        reading: ResultReading,
        access: AccessRules,
    ) -> Result<Self, ServeError> {
        let listener = TcpListener::bind(address)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|source| ServeError::Listen { address, source })?;
        let shared = SharedServer {
            directory,
            reading,
            access,
            feed: Arc::new(Feed::default()),
            busy: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        };
        Ok(Self {
            listener,
            shared: Arc::new(shared),
        })
    }

    pub fn listen_address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    pub fn run(self, is_asked_to_end: impl Fn() -> bool) -> Result<(), ServeError> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("feed".to_owned());
        let feed = thread.spawn(move || {
            let directory = shared.directory.clone();
            shared.feed.run(directory, shared.reading, &shared.is_over);
        });
        let feed = feed.map_err(ServeError::Thread)?;
        let mut pending = Vec::new();
        while !is_asked_to_end() {
            self.wait_for_bytes(&pending);
            self.accept_connections(&mut pending);
            pending = self.read_heads(pending);
        }
        self.shared.is_over.store(true, Ordering::Relaxed);
        // It ends within one look; a panic in it has been printed.
        let _ = feed.join();
        Ok(())
    }

    /// Then a request waits, because a page asks for all its parts at once.
    fn is_full(&self) -> bool {
        self.shared.busy.load(Ordering::Relaxed) >= ANSWERS
    }

    fn wait_for_bytes(&self, pending: &[PendingRequest]) {
        if self.is_full() {
            return std::thread::sleep(ACCEPT_PAUSE);
        }
        let streams = pending
            .iter()
            .map(|p| PollFd::new(&p.stream, PollFlags::IN));
        let mut wanted: Vec<PollFd<'_>> = streams.collect();
        wanted.push(PollFd::new(&self.listener, PollFlags::IN));
        // An interrupting signal may be a request to end.
        let _ = poll(&mut wanted, Some(&PATIENCE));
    }

    fn accept_connections(&self, pending: &mut Vec<PendingRequest>) {
        for _ in 0..HEADS {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if pending.len() >= HEADS {
                        drop(pending.remove(0));
                    }
                    pending.extend(PendingRequest::new(stream));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // No descriptor is left: the oldest one makes room.
                Err(_) if !pending.is_empty() => drop(pending.remove(0)),
                Err(_) => return std::thread::sleep(ACCEPT_PAUSE),
            }
        }
    }

    fn read_heads(&self, pending: Vec<PendingRequest>) -> Vec<PendingRequest> {
        let mut rest = Vec::with_capacity(pending.len());
        for mut request in pending {
            if self.is_full() {
                rest.push(request);
                continue;
            }
            match request.read_head() {
                Ok(Some(head)) => self.answer_in_thread(request, head),
                Ok(None) => rest.push(request),
                Err(Some(status)) => request.refuse(status),
                Err(None) => {}
            }
        }
        rest
    }

    fn answer_in_thread(&self, request: PendingRequest, head: RequestHead) {
        let shared = Arc::clone(&self.shared);
        shared.busy.fetch_add(1, Ordering::Relaxed);
        let permit = ThreadPermit(shared);
        let thread = std::thread::Builder::new().name("answer".to_owned());
        // Without a thread the connection is closed and the permit given back.
        let _ = thread.spawn(move || {
            if let Ok(stream) = request.into_stream() {
                answer_http_request(permit, stream, &head);
            }
        });
    }
}

fn answer_http_request(permit: ThreadPermit, mut stream: TcpStream, head: &RequestHead) {
    let shared = Arc::clone(&permit.0);
    if let Some(answer) = shared.answer_request(head) {
        let _ = stream.write_all(&answer.into_bytes());
        return;
    }
    drop(permit);
    shared.send_events(stream);
}

impl SharedServer {
    fn answer_request(&self, head: &RequestHead) -> Option<HttpAnswer> {
        let route = Route::from_path(&head.path);
        match self.access.decide_access(head) {
            AccessDecision::Granted => {}
            // A scraper keeps no cookies.
            AccessDecision::WithCookie if route == Some(Route::Metrics) => {}
            AccessDecision::WithCookie => {
                // The token moves to a cookie, so that no history and no link contains it. Only an
                // address of ours is gone to: `//elsewhere` is another server's.
                let path = route.map_or("/", |_| &head.path).to_owned();
                let cookie = self.access.session_cookie(head);
                return Some(HttpAnswer::elsewhere(path).with_header("Set-Cookie", cookie));
            }
            AccessDecision::NoToken => {
                return Some(HttpAnswer::with_text(
                    401,
                    "open the link that `loadline serve` printed, or the address with ?token=...",
                ));
            }
        }
        let Some(route) = route else {
            let page = live::message("Not found", "There is no such page.");
            return Some(page_answer(404, page));
        };
        match (head.method.as_str(), &route) {
            ("GET", Route::Events) => self.refuse_reader(),
            ("POST", Route::Stop(_)) if !self.access.may_change(head) => Some(
                HttpAnswer::with_text(403, "only the page of the run itself can stop it"),
            ),
            ("POST", Route::Stop(id)) => {
                let (status, text) = self.stop_result(id);
                Some(HttpAnswer::with_text(status, &text))
            }
            ("GET", Route::Stop(_)) => Some(HttpAnswer::with_text(405, "not with this method")),
            ("GET", _) => {
                let secret = &self.access.secret;
                let answer = routes::try_answer(&route, &self.directory, &self.reading, secret);
                Some(to_http_answer(answer.unwrap_or_else(Into::into)))
            }
            _ => Some(HttpAnswer::with_text(405, "not with this method")),
        }
    }

    fn refuse_reader(&self) -> Option<HttpAnswer> {
        (self.feed.reader_count() >= READERS)
            .then(|| HttpAnswer::with_text(503, "too many pages follow already"))
    }

    fn stop_result(&self, id: &str) -> (u16, String) {
        let asked = Store::open_to_read(&self.directory)
            .and_then(|store| Ok((store.result_by_prefix(id)?.id, store)))
            .and_then(|(id, store)| store.stop_result(&id));
        match asked {
            Ok(true) => (
                200,
                "It is asked to stop; what has finished is kept, and `loadline resume` goes on."
                    .to_owned(),
            ),
            Ok(false) => (
                409,
                "It does not run any more, or this server may not signal it.".to_owned(),
            ),
            Err(error) => (404, error.to_string()),
        }
    }

    fn send_events(&self, mut out: TcpStream) {
        let mut reader = self.feed.read();
        let mut sent = out.write_all(event_stream_head().as_bytes());
        while sent.is_ok() && !self.is_over.load(Ordering::Relaxed) {
            let mut text = String::new();
            for (name, json) in reader.next() {
                // JSON has no line ends.
                text.push_str(&format!("event: {name}\ndata: {json}\n\n"));
            }
            if text.is_empty() {
                // Distinguishes a closed page from an idle one.
                text.push_str(":\n\n");
            }
            sent = out.write_all(text.as_bytes());
        }
    }
}

struct ThreadPermit(Arc<SharedServer>);

impl Drop for ThreadPermit {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

fn to_http_answer(answer: RouteAnswer) -> HttpAnswer {
    match answer {
        RouteAnswer::Page(page) => page_answer(200, page),
        RouteAnswer::Report(html) => {
            // Its own policy is stricter; this one keeps it out of frames.
            let policy = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
            document_answer(200, html, policy.to_owned())
        }
        RouteAnswer::Metrics(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            HttpAnswer::with_body(200, kind, text)
        }
        RouteAnswer::Elsewhere(path) => HttpAnswer::elsewhere(path),
        RouteAnswer::Unknown(why) => page_answer(404, live::message("Not found", &why)),
        RouteAnswer::Failed(why) => page_answer(500, live::message("It cannot be read", &why)),
    }
}

fn page_answer(status: u16, page: live::LivePage) -> HttpAnswer {
    document_answer(status, page.html, page.policy)
}

fn document_answer(status: u16, html: String, policy: String) -> HttpAnswer {
    HttpAnswer::with_body(status, "text/html; charset=utf-8", html)
        .with_header("Content-Security-Policy", policy)
}
