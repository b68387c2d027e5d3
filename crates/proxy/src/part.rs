//! The process: orders on standard input, answers on standard output, JSON lines.
//!
//! Owns their form. The first line is a [`ProxyStart`] and is answered like every [`ProxyOrder`]. The process
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
pub use crate::network::ApplicationNetwork;

use crate::forward::TrialProxy;
use crate::stub::StubOrder;
use crate::stub::answers::StubAnswers;

/// Where the proxy stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyStart {
    /// The application's network.
    pub front: ApplicationNetwork,
    /// CPUs to run on.
    pub cpus: Vec<u32>,
}

/// What it is told then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "order")]
pub enum ProxyOrder {
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
pub enum ProxyAnswer {
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
    Report(ProxyReport),
    /// The stubs in the order in which they were ordered.
    Counted {
        /// Of each.
        stubs: Vec<StubReport>,
    },
}

/// Counters of a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProxyReport {
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
    pub(crate) fn from_answers(answers: &StubAnswers) -> Self {
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
    let Some(begin) = read::<ProxyStart>(&mut orders)? else {
        return Ok(());
    };
    pin(&begin.cpus)?;
    allow_connections();
    let mut proxy = match TrialProxy::new(&begin.front, orders.as_fd()) {
        Ok(proxy) => proxy,
        Err(error) => {
            let why = error.to_string();
            return write_answer(&mut answers, &ProxyAnswer::Refused { why });
        }
    };
    let network = proxy.network_path();
    write_answer(&mut answers, &ProxyAnswer::Standing { network })?;
    loop {
        // Each order is answered before the next is given: none waits in the reader.
        proxy.forward_until_order()?;
        let Some(order) = read::<ProxyOrder>(&mut orders)? else {
            return Ok(());
        };
        write_answer(&mut answers, &carry_out_order(&mut proxy, order))?;
    }
}

fn carry_out_order(proxy: &mut TrialProxy, order: ProxyOrder) -> ProxyAnswer {
    match order {
        ProxyOrder::Link(link) => match proxy.add_link(&link) {
            Ok(()) => ProxyAnswer::Done,
            Err(why) => ProxyAnswer::Refused { why },
        },
        ProxyOrder::Stub(stub) => match proxy.add_stub(&stub) {
            Ok(network) => ProxyAnswer::Standing { network },
            Err(why) => ProxyAnswer::Refused { why },
        },
        ProxyOrder::Window { at_ns, is_measured } => {
            proxy.open_window(at_ns, is_measured);
            ProxyAnswer::Done
        }
        ProxyOrder::Counted => ProxyAnswer::Counted {
            stubs: proxy.stub_reports(),
        },
        ProxyOrder::Report => match proxy.close_window() {
            Some(report) => ProxyAnswer::Report(report),
            None => ProxyAnswer::Refused {
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

fn write_answer(answers: &mut impl Write, answer: &ProxyAnswer) -> io::Result<()> {
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
