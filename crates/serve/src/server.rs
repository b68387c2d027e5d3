//! Requests in, answers out.
//!
//! Owns the listener, the threads that answer, how many there may be, and the headers that keep a
//! page to itself.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use loadline_engine::store::Store;
use loadline_report::live;
use tiny_http::{Header, Method, Request, Response};

use crate::ResultReading;
use crate::access::{AccessDecision, AccessRequest, AccessRules};
use crate::feed::Feed;
use crate::routes::{self, Route, RouteAnswer};

/// Requests that are answered at a time, but for those that follow the stream.
const ANSWERS: usize = 32;
/// Pages that follow the stream at a time.
const READERS: usize = 200;
const PATIENCE: Duration = Duration::from_millis(250);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

pub struct StateServer {
    listener: tiny_http::Server,
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
        let listener = tiny_http::Server::http(address)
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
        self.listener.server_addr().to_ip()
    }

    pub fn run(self, is_asked_to_end: impl Fn() -> bool) -> Result<(), ServeError> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("feed".to_owned());
        let feed = thread.spawn(move || {
            let directory = shared.directory.clone();
            shared.feed.run(directory, shared.reading, &shared.is_over);
        });
        let feed = feed.map_err(ServeError::Thread)?;
        while !is_asked_to_end() {
            // What goes wrong with one connection is that connection's end.
            if let Ok(Some(request)) = self.listener.recv_timeout(PATIENCE) {
                self.answer_in_thread(request);
            }
        }
        self.shared.is_over.store(true, Ordering::Relaxed);
        // It ends within one look; a panic in it has been printed.
        let _ = feed.join();
        Ok(())
    }

    /// Answers in a thread of its own, or says at once that there are too many.
    fn answer_in_thread(&self, request: Request) {
        let shared = Arc::clone(&self.shared);
        if shared.busy.fetch_add(1, Ordering::Relaxed) >= ANSWERS {
            shared.busy.fetch_sub(1, Ordering::Relaxed);
            send_text(request, 503, "too many requests at a time");
            return;
        }
        let thread = std::thread::Builder::new().name("answer".to_owned());
        // Without a thread the request is dropped, which answers 500.
        let _ = thread.spawn(move || shared.answer_http_request(request));
    }
}

impl SharedServer {
    fn answer_http_request(&self, request: Request) {
        let free = ThreadPermit(&self.busy);
        let (path, token) = split_token(request.url());
        let asked = AccessRequest {
            token,
            ..to_access_request(&request)
        };
        match self.access.decide_access(&asked) {
            AccessDecision::Granted => {}
            AccessDecision::WithCookie => {
                let path = path.to_owned();
                return self.with_cookie(request, &path);
            }
            AccessDecision::ForeignHost => {
                return send_text(
                    request,
                    403,
                    "this server answers to localhost and 127.0.0.1 only; start it with --token-file to reach it by another name",
                );
            }
            AccessDecision::NoToken => {
                return send_text(
                    request,
                    401,
                    "this server wants its token: open it once with ?token=... behind the address",
                );
            }
        }
        let may_change = self.access.may_change(&asked);
        let Some(route) = Route::from_path(path) else {
            return send_page(
                request,
                404,
                &live::message("Not found", "There is no such page."),
            );
        };
        match (request.method(), &route) {
            (Method::Get, Route::Events) => {
                drop(free);
                self.send_events(request);
            }
            (Method::Post, Route::Stop(_)) if !may_change => {
                send_text(request, 403, "only the page of the run itself can stop it");
            }
            (Method::Post, Route::Stop(id)) => {
                let (status, text) = self.stop_result(id);
                send_text(request, status, &text);
            }
            (Method::Get, Route::Stop(_)) | (Method::Post, _) => {
                send_text(request, 405, "not with this method");
            }
            (Method::Get, _) => {
                let secret = &self.access.secret;
                let answer = routes::answer_route(&route, &self.directory, &self.reading, secret);
                send_answer(request, answer);
            }
            _ => send_text(request, 405, "not with this method"),
        }
    }

    /// The token moves to a cookie, so that it stands in no history and no link.
    fn with_cookie(&self, request: Request, path: &str) {
        let mut response = Response::from_string("").with_status_code(303);
        let cookie = self.access.set_cookie().unwrap_or_default();
        for (name, value) in [("Set-Cookie", cookie.as_str()), ("Location", path)] {
            response = with_header(response, name, value);
        }
        send_response(request, response);
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

    fn send_events(&self, request: Request) {
        if self.feed.reader_count() >= READERS {
            return send_text(request, 503, "too many pages follow already");
        }
        let mut reader = self.feed.read();
        let mut out = request.into_writer();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\nretry: 2000\n\n";
        let mut sent = out.write_all(head.as_bytes());
        while sent.is_ok() && !self.is_over.load(Ordering::Relaxed) {
            let mut text = String::new();
            for (name, json) in reader.next() {
                // JSON has no line ends of its own.
                text.push_str(&format!("event: {name}\ndata: {json}\n\n"));
            }
            if text.is_empty() {
                // Tells a page that went away from one that has nothing to hear.
                text.push_str(":\n\n");
            }
            sent = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    }
}

/// Gives a place back, also when an answer panics.
struct ThreadPermit<'a>(&'a AtomicUsize);

impl Drop for ThreadPermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn split_token(url: &str) -> (&str, Option<&str>) {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let token = pairs.find(|(name, _)| *name == "token");
    (path, token.map(|(_, value)| value))
}

fn to_access_request(request: &Request) -> AccessRequest<'_> {
    let header = |name: &'static str| {
        let mut found = request.headers().iter();
        let found = found.find(|h| h.field.equiv(name));
        found.map(|h| h.value.as_str())
    };
    AccessRequest {
        host: header("Host"),
        authorization: header("Authorization"),
        cookie: header("Cookie"),
        token: None,
        secret: header("X-Loadline-Secret"),
    }
}

fn send_answer(request: Request, answer: RouteAnswer) {
    match answer {
        RouteAnswer::Page(found) => send_page(request, 200, &found),
        RouteAnswer::Report(html) => {
            // Its own policy is stricter; this one keeps it out of frames.
            let policy = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
            send_document(request, 200, html, policy);
        }
        RouteAnswer::Elsewhere(path) => {
            let response = Response::from_string("").with_status_code(303);
            send_response(request, with_header(response, "Location", &path));
        }
        RouteAnswer::Unknown(why) => send_page(request, 404, &live::message("Not found", &why)),
        RouteAnswer::Failed(why) => {
            send_page(request, 500, &live::message("It cannot be read", &why))
        }
    }
}

fn send_page(request: Request, status: u16, page: &live::LivePage) {
    send_document(request, status, page.html.clone(), &page.policy);
}

fn send_document(request: Request, status: u16, html: String, policy: &str) {
    let response = Response::from_string(html).with_status_code(status);
    let response = with_header(response, "Content-Security-Policy", policy);
    send_response(
        request,
        with_header(response, "Content-Type", "text/html; charset=utf-8"),
    );
}

fn send_text(request: Request, status: u16, text: &str) {
    let response = Response::from_string(format!("{text}\n")).with_status_code(status);
    send_response(
        request,
        with_header(response, "Content-Type", "text/plain; charset=utf-8"),
    );
}

type Text = Response<io::Cursor<Vec<u8>>>;

fn with_header(mut response: Text, name: &str, value: &str) -> Text {
    // A path that is no header is left out; ours are all plain.
    if let Ok(header) = Header::from_bytes(name, value) {
        response.add_header(header);
    }
    response
}

/// A page that went away is no error.
fn send_response(request: Request, mut response: Text) {
    for (name, value) in [
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cache-Control", "no-store"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
    ] {
        response = with_header(response, name, value);
    }
    let _ = request.respond(response);
}
