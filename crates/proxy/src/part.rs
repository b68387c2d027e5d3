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
use loadline_sys::{CpuSet, sched_setaffinity};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

pub use crate::link::LinkOrder;
pub use crate::network::ApplicationNetwork;

use crate::forward::TrialProxy;
use crate::stub::StubOrder;
use crate::stub::answers::StubAnswers;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyStart {
    pub front: ApplicationNetwork,
    pub cpus: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "order")]
pub enum ProxyOrder {
    Link(LinkOrder),
    Stub(StubOrder),
    Window {
        /// When, CLOCK_MONOTONIC.
        at_ns: u64,
        /// Whether the measured load begins, which starts the schedule of toxics.
        is_measured: bool,
    },
    Report,
    Counted,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum ProxyAnswer {
    /// It listens in a network: the application's, or for a stub its own.
    Standing {
        network: PathBuf,
    },
    Done,
    Refused {
        why: String,
    },
    Report(ProxyReport),
    Counted {
        stubs: Vec<StubReport>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProxyReport {
    #[serde(rename = "window_ns", with = "wire::nanos")]
    pub window: Duration,
    #[serde(rename = "cpu_ns", with = "wire::nanos")]
    pub cpu: Duration,
    /// The proxy's own delay, 99th percentile.
    #[serde(rename = "lag_p99_ns", with = "wire::nanos")]
    pub lag_p99: Duration,
    #[serde(rename = "lag_max_ns", with = "wire::nanos")]
    pub lag_max: Duration,
    pub links: Vec<LinkReport>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    pub total: LinkSecond,
    pub seconds: Vec<LinkSecond>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StubReport {
    pub requests: u64,
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

/// Carries out orders until `orders` end. Errors: An invalid first line, a network that cannot be
/// entered, a closed output.
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
        proxy.forward(None)?;
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

pub(crate) fn pin(cpus: &[u32]) -> io::Result<()> {
    let mut mask = CpuSet::new();
    for cpu in cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU as u32) {
        mask.set(*cpu as usize);
    }
    if cpus.is_empty() {
        Ok(())
    } else {
        Ok(sched_setaffinity(None, &mask)?)
    }
}

/// Two descriptors a connection: as many as this machine gives.
pub(crate) fn allow_connections() {
    let most = getrlimit(Resource::Nofile).maximum;
    let all = Rlimit {
        current: most,
        maximum: most,
    };
    // Earlier allowances stay.
    let _ = setrlimit(Resource::Nofile, all);
}
