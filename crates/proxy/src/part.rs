//! The process: orders on standard input, answers on standard output, JSON lines.
//!
//! Owns their form. The first line is a [`Begin`] and is answered like every [`Order`]. The process
//! ends with its standard input; whoever starts it lets it die with itself.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use loadline_analysis::record::LinkSecond;
use loadline_analysis::wire;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};

pub use crate::link::LinkOrder;
pub use crate::network::Front;

use crate::forward::Proxy;
use crate::stub::StubOrder;
use crate::stub::answers::Answers;

/// Where the proxy stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// The application's network.
    pub front: Front,
    /// CPUs to run on.
    pub cpus: Vec<u32>,
}

/// What it is told then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "order")]
pub enum Order {
    /// Stand before one more dependency.
    Link(LinkOrder),
    /// Answer in the place of one more.
    Stub(StubOrder),
    /// A window of counters begins.
    Window {
        /// When, CLOCK_MONOTONIC.
        at_ns: u64,
        /// Whether it is the measured load, from whose begin toxics with a schedule count.
        is_measured: bool,
    },
    /// It ends.
    Report,
    /// What were stubs asked for?
    Counted,
}

/// What it says to each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Answer {
    /// It stands in a network: the application's, or of a stub the one in which it listens.
    Standing {
        /// The file that stands for that network, while this process lives.
        network: PathBuf,
    },
    /// It is done.
    Done,
    /// It cannot be done.
    Refused {
        /// Why.
        why: String,
    },
    /// What was counted in the window that ends.
    Report(Report),
    /// The stubs in the order in which they were ordered.
    Counted {
        /// Of each.
        stubs: Vec<StubReport>,
    },
}

/// Counters of a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Its length.
    #[serde(rename = "window_ns", with = "wire::nanos")]
    pub window: Duration,
    /// CPU time used in it.
    #[serde(rename = "cpu_ns", with = "wire::nanos")]
    pub cpu: Duration,
    /// The proxy's own delay, 99th percentile.
    #[serde(rename = "lag_p99_ns", with = "wire::nanos")]
    pub lag_p99: Duration,
    /// The largest.
    #[serde(rename = "lag_max_ns", with = "wire::nanos")]
    pub lag_max: Duration,
    /// The links in the order in which they were ordered.
    pub links: Vec<LinkReport>,
}

/// Counters of one link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Of the whole window.
    pub total: LinkSecond,
    /// Second by second.
    pub seconds: Vec<LinkSecond>,
}

/// What one stub was asked for since it listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StubReport {
    /// Requests that came.
    pub requests: u64,
    /// Those for which there was no answer, by what they ask for.
    pub unanswered: BTreeMap<String, u64>,
}

impl StubReport {
    pub(crate) fn of(answers: &Answers) -> Self {
        Self {
            requests: answers.requests,
            unanswered: answers.unanswered.clone(),
        }
    }
}

/// Does as it is told until `orders` end.
///
/// # Errors
/// A first line that is none, a network that cannot be entered, answers that nobody takes.
pub fn run(mut orders: impl BufRead + AsFd, mut answers: impl Write) -> io::Result<()> {
    let Some(begin) = read::<Begin>(&mut orders)? else {
        return Ok(());
    };
    pin(&begin.cpus)?;
    allow_connections();
    let mut proxy = match Proxy::new(&begin.front, orders.as_fd()) {
        Ok(proxy) => proxy,
        Err(error) => {
            let why = error.to_string();
            return say(&mut answers, &Answer::Refused { why });
        }
    };
    let network = proxy.network();
    say(&mut answers, &Answer::Standing { network })?;
    loop {
        // Each order is answered before the next is given: none waits in the reader.
        proxy.until_order()?;
        let Some(order) = read::<Order>(&mut orders)? else {
            return Ok(());
        };
        say(&mut answers, &carried_out(&mut proxy, order))?;
    }
}

fn carried_out(proxy: &mut Proxy, order: Order) -> Answer {
    match order {
        Order::Link(link) => match proxy.link(&link) {
            Ok(()) => Answer::Done,
            Err(why) => Answer::Refused { why },
        },
        Order::Stub(stub) => match proxy.stub(&stub) {
            Ok(network) => Answer::Standing { network },
            Err(why) => Answer::Refused { why },
        },
        Order::Window { at_ns, is_measured } => {
            proxy.begin(at_ns, is_measured);
            Answer::Done
        }
        Order::Counted => Answer::Counted {
            stubs: proxy.counted(),
        },
        Order::Report => match proxy.end() {
            Some(report) => Answer::Report(report),
            None => Answer::Refused {
                why: "no window has begun".to_owned(),
            },
        },
    }
}

fn read<T: serde::de::DeserializeOwned>(orders: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = String::new();
    match orders.read_line(&mut line)? {
        0 => Ok(None),
        _ => Ok(Some(serde_json::from_str(&line)?)),
    }
}

fn say(answers: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    answers.write_all(&line)?;
    answers.flush()
}

fn pin(cpus: &[u32]) -> io::Result<()> {
    let mut mask = CpuSet::new();
    for cpu in cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU as u32) {
        mask.set(*cpu as usize);
    }
    match cpus.is_empty() {
        true => Ok(()),
        false => Ok(sched_setaffinity(None, &mask)?),
    }
}

/// Two descriptors a connection: as many as this machine gives.
fn allow_connections() {
    let most = getrlimit(Resource::Nofile).maximum;
    let all = Rlimit {
        current: most,
        maximum: most,
    };
    // What was allowed before stays allowed.
    let _ = setrlimit(Resource::Nofile, all);
}
