//! Readiness: asks the application every few milliseconds until it answers well.
//!
//! Owns the probing thread. It runs in the application's network namespace, and on the machine's
//! network it speaks only to a listener that belongs to the trial. Start time counts to the first
//! good response, whatever the application logs.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadline_load::http2::HealthCheck;
use loadline_load::response::MAX_HEAD;
use loadline_protocol::{ContainerEngine, Readiness};
use loadline_sys::{LinkNameSpaceType, move_into_link_name_space};

use crate::clock::monotonic_ns;

use crate::container::AppContainer;
use crate::halt::{self, HaltReason};
use crate::listener::{Listener, find_listener};
use crate::metrics::{self, MetricSource};
use crate::program::ProgramSpec;
use crate::{cpus, oci};

/// Pause between two attempts at a port: the resolution of start times.
const INTERVAL: Duration = Duration::from_millis(10);

/// An answer with metrics has 28 KB, which a starting JVM would make again and again; a command takes a
/// CPU.
const BETWEEN_SAMPLES: Duration = Duration::from_millis(200);

const ANSWER: Duration = Duration::from_secs(10);
const SLICE: Duration = Duration::from_millis(50);

pub enum ProbeMethod {
    Http {
        path: String,
    },
    Tcp,
    Grpc,
    Command {
        engine: ContainerEngine,
        container: String,
        command: Vec<String>,
    },
    /// A command of this machine, outside of the limits.
    Program {
        words: Vec<String>,
        program: ProgramSpec,
    },
    Metrics(Vec<MetricSource>),
}

/// Processes of the trial, asked for before each attempt on the machine's network.
pub type Processes = Box<dyn Fn() -> Vec<u32> + Send>;

pub struct ReadinessProbe {
    pub port: u16,
    pub question: ProbeMethod,
    pub network: Option<OwnedFd>,
    pub processes: Option<Processes>,
    pub cpus: Vec<u32>,
}

impl ReadinessProbe {
    pub fn for_container(
        readiness: &Readiness,
        container: &dyn AppContainer,
        program: ProgramSpec,
        cpus: &[u32],
    ) -> Result<Option<Self>, HaltReason> {
        let (port, question) = match readiness {
            Readiness::Http { port, path } => (*port, ProbeMethod::Http { path: path.clone() }),
            Readiness::Tcp { port } => (*port, ProbeMethod::Tcp),
            Readiness::Grpc { port } => (*port, ProbeMethod::Grpc),
            Readiness::LogLine { .. } | Readiness::Exit => return Ok(None),
            Readiness::Command { command } => {
                let words = command.clone();
                let method = match container.holding_engine() {
                    Some((engine, name)) => ProbeMethod::Command {
                        engine: engine.clone(),
                        container: name.to_owned(),
                        command: words,
                    },
                    None => ProbeMethod::Program { words, program },
                };
                (0, method)
            }
            Readiness::Sample { port } => {
                (port.unwrap_or_default(), ProbeMethod::Metrics(Vec::new()))
            }
        };
        let group = container.application_group().clone();
        let processes = move || group.process_ids().unwrap_or_default();
        let opened = container
            .application_network()
            .namespace_path()
            .map(std::fs::File::open)
            .transpose();
        let network = opened.map_err(halt::step_failed("opening the trial's network namespace"))?;
        Ok(Some(Self {
            port,
            question,
            processes: (port > 0 && network.is_none() && container.is_within_reach())
                .then(|| Box::new(processes) as _),
            network: network.map(Into::into),
            cpus: cpus.to_vec(),
        }))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeFinding {
    Ready {
        at_ns: u64,
        detail: String,
    },
    /// Not yet: `HTTP 503`, `connection refused`. Told when it changes.
    NotYet {
        detail: String,
    },
    /// Someone else listens on the port; nothing was sent.
    Foreign,
    Broken {
        detail: String,
    },
}

pub struct ProbeThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ProbeThread {
    pub fn start_probing(
        probe: ReadinessProbe,
        tell: impl Fn(ProbeFinding) + Send + 'static,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("probe".to_owned())
            .spawn(move || probe.run(&stopped, &tell))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for ProbeThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the probe has been a missing `Ready`; there is nothing to add.
            let _ = thread.join();
        }
    }
}

impl ReadinessProbe {
    fn run(&self, stop: &AtomicBool, tell: &dyn Fn(ProbeFinding)) {
        cpus::pin_this_thread(&self.cpus);
        if let Some(network) = &self.network
            && let Err(errno) =
                move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
        {
            let detail = format!("entering the application's network namespace: {errno}");
            return tell(ProbeFinding::Broken { detail });
        }
        let mut last = String::new();
        while !stop.load(Ordering::Relaxed) {
            match self.ask_once(stop) {
                ProbeFinding::NotYet { detail } if detail == last => {}
                ProbeFinding::NotYet { detail } => {
                    last.clone_from(&detail);
                    tell(ProbeFinding::NotYet { detail });
                }
                decided => return tell(decided),
            }
            std::thread::sleep(match self.question {
                ProbeMethod::Http { .. } | ProbeMethod::Tcp | ProbeMethod::Grpc => INTERVAL,
                _ => BETWEEN_SAMPLES,
            });
        }
    }

    fn ask_once(&self, stop: &AtomicBool) -> ProbeFinding {
        if let ProbeMethod::Command {
            engine,
            container,
            command,
        } = &self.question
        {
            return run(engine, container, command, stop);
        }
        if let ProbeMethod::Program { words, program } = &self.question {
            let ready = || ready_now("its command ended with 0".to_owned());
            return metrics::command_refusal(words, program).map_or_else(ready, not_yet);
        }
        if let Some(processes) = &self.processes {
            match find_listener(self.port, &processes()) {
                Listener::Ours => {}
                Listener::None => return not_yet("nothing listens on the port"),
                Listener::Foreign => return ProbeFinding::Foreign,
            }
        }
        if let ProbeMethod::Metrics(sources) = &self.question {
            let ready = || ready_now("a sample of every metric".to_owned());
            return metrics::missing_sample(sources).map_or_else(ready, not_yet);
        }
        let stream = match self.connect_loopback() {
            Ok(stream) => stream,
            Err(error) => return not_yet(connect_error(&error)),
        };
        match &self.question {
            ProbeMethod::Grpc => match check_health(stream, stop) {
                Ok(()) => ready_now("gRPC SERVING".to_owned()),
                Err(detail) => not_yet(detail),
            },
            ProbeMethod::Http { path } => match self.get_status(stream, path, stop) {
                Ok(status) if status < 400 => ready_now(format!("HTTP {status}")),
                Ok(status) => not_yet(format!("HTTP {status}")),
                Err(detail) => not_yet(detail),
            },
            _ => ready_now("connected".to_owned()),
        }
    }

    /// At `::1` where nothing listens at 127.0.0.1; the error is always the latter's.
    fn connect_loopback(&self) -> io::Result<TcpStream> {
        let connect = |address: IpAddr| {
            TcpStream::connect_timeout(&SocketAddr::new(address, self.port), ANSWER)
        };
        let four = connect(Ipv4Addr::LOCALHOST.into());
        four.or_else(|why| connect(Ipv6Addr::LOCALHOST.into()).map_err(|_| why))
    }

    fn get_status(&self, stream: TcpStream, path: &str, stop: &AtomicBool) -> Result<u16, String> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost:{}\r\nUser-Agent: loadline\r\nAccept: */*\r\nConnection: close\r\n\r\n",
            self.port
        );
        let mut head = Vec::new();
        // The whole head: half of one is no answer.
        exchange(stream, request.as_bytes(), stop, |bytes| {
            head.extend_from_slice(bytes);
            if is_whole(&head) || head.contains(&b'\n') && http_status(&head).is_none() {
                let status = http_status(&head);
                return Some(status.ok_or_else(|| "the answer is not HTTP/1".to_owned()));
            }
            let is_endless = head.len() > MAX_HEAD;
            is_endless.then(|| Err("the head of the answer does not end".to_owned()))
        })
    }
}

fn check_health(stream: TcpStream, stop: &AtomicBool) -> Result<(), String> {
    let mut check = HealthCheck::default();
    let request = HealthCheck::request_bytes();
    exchange(stream, &request, stop, |bytes| check.read_answer(bytes))
}

/// Sends the request and hands on the bytes of the answer until `take` has the whole answer. Errors:
/// The words of `take`, or why there is no answer.
fn exchange<T>(
    mut stream: TcpStream,
    request: &[u8],
    stop: &AtomicBool,
    mut take: impl FnMut(&[u8]) -> Option<Result<T, String>>,
) -> Result<T, String> {
    stream
        .set_read_timeout(Some(SLICE))
        .and_then(|()| stream.write_all(request))
        .map_err(|error| format!("the request could not be sent: {error}"))?;
    let begin = Instant::now();
    let (mut buffer, mut has_begun) = ([0; 1024], false);
    loop {
        // Also of an answer that comes a byte at a time.
        if stop.load(Ordering::Relaxed) || begin.elapsed() > ANSWER {
            return Err(format!("no answer within {} s", ANSWER.as_secs()));
        }
        match stream.read(&mut buffer) {
            Ok(0) if !has_begun => {
                return Err("the connection was closed without an answer".to_owned());
            }
            Ok(0) => return Err("the connection was closed in the answer's head".to_owned()),
            Ok(length) => {
                has_begun = true;
                if let Some(answer) = take(&buffer[..length]) {
                    return answer;
                }
            }
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(format!("the connection failed: {}", error.kind())),
        }
    }
}

fn run(
    engine: &ContainerEngine,
    container: &str,
    command: &[String],
    stop: &AtomicBool,
) -> ProbeFinding {
    let mut client = oci::engine::engine_command(engine);
    client.args(["exec", container]).args(command);
    client.stdout(Stdio::null()).stderr(Stdio::null());
    let mut client = match client.spawn() {
        Ok(client) => client,
        Err(error) => {
            let detail = format!("starting the engine's program: {error}");
            return ProbeFinding::Broken { detail };
        }
    };
    let begin = Instant::now();
    loop {
        match client.try_wait() {
            Ok(Some(status)) if status.success() => {
                return ready_now("its command ended with 0".to_owned());
            }
            Ok(Some(status)) => return not_yet(format!("its command ended with {status}")),
            Ok(None) if !stop.load(Ordering::Relaxed) && begin.elapsed() < ANSWER => {
                std::thread::sleep(INTERVAL);
            }
            _ => {
                // What it runs dies with the container.
                let _ = client.kill().and_then(|()| client.wait());
                let waited = ANSWER.as_secs();
                return not_yet(format!("its command did not end within {waited} s"));
            }
        }
    }
}

fn ready_now(detail: String) -> ProbeFinding {
    let at_ns = monotonic_ns();
    ProbeFinding::Ready { at_ns, detail }
}

fn not_yet(detail: impl Into<String>) -> ProbeFinding {
    let detail = detail.into();
    ProbeFinding::NotYet { detail }
}

fn connect_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::TimedOut => format!("no connection within {} s", ANSWER.as_secs()),
        _ => format!("no connection: {error}"),
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

fn is_whole(head: &[u8]) -> bool {
    let ends = |end: &[u8]| memchr::memmem::find(head, end).is_some();
    ends(b"\r\n\r\n") || ends(b"\n\n")
}

/// The status of a response head. Source: RFC 9112, section 4.
fn http_status(head: &[u8]) -> Option<u16> {
    let line = head.split(|b| *b == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let rest = line.strip_prefix("HTTP/1.")?;
    let code = rest.split_ascii_whitespace().nth(1)?;
    let code = code.parse().ok();
    code.filter(|code| (100..600).contains(code) && rest.len() > 5)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    fn probing(
        listener: &TcpListener,
        question: ProbeMethod,
    ) -> (ProbeThread, Receiver<ProbeFinding>) {
        let (tell, told) = channel();
        let probe = ReadinessProbe {
            port: listener.local_addr().expect("it is bound").port(),
            question,
            network: None,
            processes: None,
            cpus: cpus::available_cpus().expect("it is known"),
        };
        let tell = move |finding| drop(tell.send(finding));
        (
            ProbeThread::start_probing(probe, tell).expect("a thread"),
            told,
        )
    }

    fn serve(answers: &'static [&'static str]) -> TcpListener {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let server = listener.try_clone().expect("a descriptor");
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = server.accept().expect("a client");
                let mut request = [0; 512];
                let length = stream.read(&mut request).expect("a request");
                assert!(request[..length].starts_with(b"GET /health?x=1 HTTP/1.1\r\n"));
                stream.write_all(answer.as_bytes()).expect("it listens");
            }
        });
        listener
    }

    fn http() -> ProbeMethod {
        ProbeMethod::Http {
            path: "/health?x=1".to_owned(),
        }
    }

    #[test]
    fn it_asks_until_the_answer_is_good() {
        let listener = serve(&[
            "HTTP/1.1 503 Service Unavailable\r\n\r\n",
            "",
            "SSH-2.0-x\r\n",
            "HTTP/1.1 200 OK\r\nContent-Le",
            "HTTP/1.1 200 OK\r\n\r\n",
        ]);
        let (_probing, told) = probing(&listener, http());
        let findings: Vec<ProbeFinding> = told.iter().collect();
        let details: Vec<&str> = findings
            .iter()
            .map(|finding| match finding {
                ProbeFinding::NotYet { detail } | ProbeFinding::Ready { detail, .. } => {
                    detail.as_str()
                }
                _ => "?",
            })
            .collect();
        assert_eq!(
            details,
            [
                "HTTP 503",
                "the connection was closed without an answer",
                "the answer is not HTTP/1",
                "the connection was closed in the answer's head",
                "HTTP 200"
            ]
        );
    }

    #[test]
    fn a_server_that_never_answers_does_not_hold_the_probe() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let (probing, told) = probing(&listener, http());
        let (_open, _) = listener.accept().expect("the probe");
        // It waits for the answer now; dropping it must end it, or this test hangs.
        drop(probing);
        assert!(!told.iter().any(|f| matches!(f, ProbeFinding::Ready { .. })));
    }

    #[test]
    fn a_head_that_comes_a_byte_at_a_time_does_not_hold_the_probe() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let (probing, _told) = probing(&listener, http());
        let (mut stream, _) = listener.accept().expect("the probe");
        let (tell, told) = channel();
        let dripping = std::thread::spawn(move || {
            // It reads sooner than any look at whether it is still wanted.
            (0_usize..)
                .find(|sent| {
                    let _ = tell.send(*sent);
                    std::thread::sleep(Duration::from_millis(1));
                    stream.write_all(b"H").is_err()
                })
                .unwrap_or_default()
        });
        assert!(told.iter().any(|sent| sent > 100));
        drop(probing);
        let sent = dripping.join().expect("it counts");
        assert!(sent < MAX_HEAD, "{sent}");
    }

    #[test]
    fn a_connection_is_enough_for_tcp() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let (_probing, told) = probing(&listener, ProbeMethod::Tcp);
        assert!(matches!(told.recv(), Ok(ProbeFinding::Ready { .. })));
    }

    #[test]
    fn a_foreign_listener_gets_no_request() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a descriptor");
        let (tell, told) = channel();
        let probe = ReadinessProbe {
            port: listener.local_addr().expect("it is bound").port(),
            question: http(),
            network: None,
            processes: Some(Box::new(|| vec![1])),
            cpus: cpus::available_cpus().expect("it is known"),
        };
        let tell = move |finding| drop(tell.send(finding));
        let _probing = ProbeThread::start_probing(probe, tell).expect("a thread");
        assert_eq!(told.iter().collect::<Vec<_>>(), [ProbeFinding::Foreign]);
        assert!(listener.accept().is_err(), "there must be no connection");
    }

    #[test]
    fn status_lines_are_read_strictly() {
        for (head, code) in [
            ("HTTP/1.1 200 OK\r\n", Some(200)),
            ("HTTP/1.0 404\r\n", Some(404)),
            ("HTTP/2 200\r\n", None),
            ("HTTP/1.1 999 x\r\n", None),
            ("HTTP/1.1\r\n", None),
            ("", None),
        ] {
            assert_eq!(http_status(head.as_bytes()), code, "{head:?}");
        }
    }
}
